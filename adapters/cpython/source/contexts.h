/* SPDX-License-Identifier: MIT
 *
 * The calling context tree: each frame below its caller, with what was counted there. Node 0 is the root.
 *
 * All functions are called with the recording's lock.
 */
#ifndef CONTEXTS_H
#define CONTEXTS_H

#include "codes.h"

enum { CONTEXTS_ROOT = 0, CONTEXTS_LOST = 1, CONTEXTS_OUTSIDE = 2, CONTEXTS_FIRST = 3 };

#define CONTEXTS_ENTRY (1u << 31)

struct context {
	uint32_t parent;
	uint32_t code; /* its number; 0 for the nodes before FIRST */
	int32_t line;  /* in the file of the code, from 1; 0: unknown */
	uint32_t
		place; /* of the instruction; with CONTEXTS_ENTRY if C code has called the function */
	/* What was counted: */
	uint64_t bytes, calls, temporary; /* allocated; the unit of `bytes` is ns for CPU time */
	uint64_t live_bytes, live_calls;
	/* `live_bytes` at the highest sum of all contexts, if `peak` is the number of that; otherwise
	 * `live_bytes` has not changed since then. */
	uint64_t peak_bytes;
	uint64_t peak;
};

extern struct context *contexts;
extern uint32_t context_count;

bool contexts_open(void);
uint32_t contexts_child(uint32_t parent, const struct incstack_heap_frame *frame, bool is_entry);
void contexts_free(void);

#endif
