/* SPDX-License-Identifier: MIT
 *
 * Names of code that a process has made at run time, from the files that runtimes write for perf:
 * /tmp/perf-PID.map, and the jitdump jit-PID.dump in the current directory.
 */
#ifndef INCSTACK_TOOL_JIT_NAMES_H
#define INCSTACK_TOOL_JIT_NAMES_H

#include <stdint.h>
#include <stdio.h>

enum { TOOL_JIT_FILE_MOST = 1 << 30 }; /* bytes that are read */

struct tool_jit_names;

/* Reads the names of a process from a map and a jitdump; each may be null. Returns null if there is no
 * memory. */
struct tool_jit_names *tool_jit_names_of(FILE *map, FILE *dump);
void tool_jit_names_free(struct tool_jit_names *names); /* also null */

/* Returns the name of the newest code that contains the address, or null. Valid until free. */
const char *tool_jit_names_find(struct tool_jit_names *names, uint64_t address);

#endif
