/* SPDX-License-Identifier: MIT
 *
 * The files of a command that reads what strangers wrote: traces, profiles, modules. The command's work
 * runs in a jail, where nothing can be opened; the broker opens what the command line names, and what
 * the work may want besides.
 */
#ifndef INCSTACK_TOOL_FILES_H
#define INCSTACK_TOOL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tool_files {
	const char *const *inputs; /* traces, with their spools, and profiles; "-": stdin */
	size_t input_count;
	const char *const *outputs;
	size_t output_count;
	bool takes_pipes; /* all inputs may be pipes, not only those whose names are of profiles */
	bool completes;   /* the tool has derived the names of the inputs, and may complete them, */
	size_t given;     /* except for so many at the end, which the user named */
};

/* Runs the work in a jail. Returns the exit status. */
int tool_files_run(const struct tool_files *files, int (*work)(void *context), void *context);

/* ---- for the work -------------------------------------------------------------------------- */

/* These return a descriptor, or -1 and set errno. */
int tool_files_input(const char *path);
int tool_files_spool(const char *path);  /* of the trace with that path */
int tool_files_module(const char *path); /* a program or a library */
/* The debug information of a build, from the servers of DEBUGINFOD_URLS. It may take a minute. */
int tool_files_debuginfod(const unsigned char *id, size_t length);

int tool_files_scratch(void); /* without a name, for reading and writing */

/* The files that runtimes write for perf, if they were last written after `since_ns` and
 * belong to `owner`, to the user or to root. A message tells why another file is not used. */
enum tool_files_jit { TOOL_FILES_JIT_MAP, TOOL_FILES_JIT_DUMP };
int tool_files_jit(enum tool_files_jit which, uint64_t pid, uint64_t since_ns, uint32_t owner);

/* Returns the Debian package with the symbols of a file that a package has, or null. The caller frees it. */
char *tool_files_package(const char *path);
/* A new file that is to replace an input, which nobody writes any more. Nobody else can write to the input until
 * tool_files_replaced is called, which returns 0, or -1 and sets errno: then the input stays as it is. */
int tool_files_replace(const char *path);
int tool_files_replaced(const char *path, bool failed);

/* Removes the spool, when what it has is in the trace with that path. */
void tool_files_spool_is_done(const char *path);
/* When a process has started; 0: there is none. */
uint64_t tool_files_process_start(uint64_t pid);

#endif
