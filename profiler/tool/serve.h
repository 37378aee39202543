/* SPDX-License-Identifier: MIT
 *
 * What the work of a command may ask its broker for.
 */
#ifndef INCSTACK_TOOL_SERVE_H
#define INCSTACK_TOOL_SERVE_H

#include "tool/jail/jail.h"
#include "files.h"

enum tool_serve_kind {
	TOOL_SERVE_INPUT = 1,   /* the text is the path */
	TOOL_SERVE_SPOOL,       /* the path of the trace */
	TOOL_SERVE_SPOOL_DONE,  /* the path of the trace */
	TOOL_SERVE_MODULE,      /* the path */
	TOOL_SERVE_DEBUGINFOD,  /* the build-id */
	TOOL_SERVE_PACKAGE,     /* the path of a file that a package has */
	TOOL_SERVE_JIT,         /* which one, the process, since when */
	TOOL_SERVE_PROCESS,     /* its id */
	TOOL_SERVE_SCRATCH,     /* a file without a name */
	TOOL_SERVE_OUTPUT,      /* the path */
	TOOL_SERVE_OUTPUT_DONE, /* the path; whether writing it failed */
	TOOL_SERVE_REPLACE,     /* the path of an input */
	TOOL_SERVE_REPLACED,    /* the path of an input; whether writing it failed */
};

enum { TOOL_SERVE_ROWS = TOOL_SERVE_REPLACED };

/* Their context is a struct tool_files. */
extern const struct tool_jail_row tool_serve_rows[TOOL_SERVE_ROWS];

#endif
