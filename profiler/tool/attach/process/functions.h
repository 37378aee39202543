/* SPDX-License-Identifier: MIT
 *
 * The functions of the process that allocate, and the breakpoints that they need.
 */
#ifndef INCSTACK_TOOL_ATTACH_FUNCTIONS_H
#define INCSTACK_TOOL_ATTACH_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "space.h"

enum tool_attach_function {
	TOOL_ATTACH_MALLOC,
	TOOL_ATTACH_CALLOC,
	TOOL_ATTACH_REALLOC,
	TOOL_ATTACH_ALIGNED,
	TOOL_ATTACH_POSIX_MEMALIGN,
	TOOL_ATTACH_NEW,
	TOOL_ATTACH_DEALLOCATE,
};

/* What a breakpoint reports. */
enum tool_attach_hit_kind {
	TOOL_ATTACH_ENTRY,  /* a call, with a copy of the stack */
	TOOL_ATTACH_RETURN, /* the return of a call */
	TOOL_ATTACH_FREE,   /* a call, without a copy */
	TOOL_ATTACH_HIT_KINDS,
};

enum { TOOL_ATTACH_PROBES = 64 }; /* at most */

/* A breakpoint that the worker asks for. */
struct tool_attach_wanted {
	const struct tool_attach_module *module; /* which has a copy */
	uint64_t offset;                         /* of an instruction in the file */
	uint32_t number;                         /* of the probe; each hit has it */
	enum tool_attach_hit_kind kind;
};

/* Finds the breakpoints. The number of a probe is an enum tool_attach_function. Returns 0, or an exit
 * status after a message. The list is to be freed. */
int tool_attach_functions_find(pid_t pid, const struct tool_attach_space *space,
			       struct tool_attach_wanted **wanted, size_t *count);

#endif
