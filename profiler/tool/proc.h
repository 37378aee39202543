/* SPDX-License-Identifier: MIT
 *
 * What /proc tells about another process.
 */
#ifndef INCSTACK_TOOL_PROC_H
#define INCSTACK_TOOL_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Fields of a `stat` file, as proc(5) numbers them. */
enum { TOOL_PROC_FLAGS = 9, TOOL_PROC_START = 22 };

/* Reads the beginning of /proc/PID/NAME and ends it with a zero byte. Returns how many bytes there are
 * before that; 0 if the file cannot be read. */
size_t tool_proc_read(pid_t pid, const char *name, char *text, size_t size);
/* Returns a numeric field of /proc/PID/NAME, which is a `stat` file; 0 if there is no such process. */
uint64_t tool_proc_stat(pid_t pid, const char *name, int number);
/* Returns a numeric field of the text of a `stat` file; 0 if there is none. */
uint64_t tool_proc_number(const char *stat, int number);
/* Returns what follows the name in the text of a `status` file; "": nothing. */
const char *tool_proc_field(const char *status, const char *name);
/* Whether the process has ended, or runs no code any more. */
int tool_proc_has_ended(const char *status);
/* Returns the user ("\nUid:\t") or the group ("\nGid:\t") whose files the process may open; -1: not
 * known. */
long tool_proc_id(pid_t pid, const char *name);

#endif
