/* SPDX-License-Identifier: MIT
 *
 * The calling context tree of a heap profile. A node is identified by its parent and a code.
 * Values are the node's own; those of its callees are not included.
 */
#ifndef INCSTACK_TRACEFILE_CCT_H
#define INCSTACK_TRACEFILE_CCT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"

#define INCSTACK__CCT_ROOT 0u
#define INCSTACK__CCT_FAILED UINT32_MAX
/* Special values that are not the code of any pc. A trace whose outer callers are unknown starts
 * below TRUNCATED. An allocation without a trace belongs to NO_TRACE. */
#define INCSTACK__CCT_TRUNCATED UINT64_MAX
#define INCSTACK__CCT_NO_TRACE (UINT64_MAX - 1)
/* As TRUNCATED: the outermost frame was to have a caller by its frame pointer, which led nowhere. */
#define INCSTACK__CCT_POINTER (UINT64_MAX - 2)
/* A group of threads (read.h) has this code plus the number of the group. No module has a number
 * so large. */
#define INCSTACK__CCT_THREADS (UINT64_C(0xffff) << 48)
#define INCSTACK__CCT_NO_THREAD (INCSTACK__CCT_THREADS + UINT32_MAX) /* an unknown thread */

struct incstack__cct_values {
	uint64_t calls;
	uint64_t bytes;
	uint64_t live;      /* bytes now; after the last event: never freed */
	uint64_t temporary; /* calls whose block was freed before the next block was allocated */
	uint64_t peak;      /* bytes live when the program's live bytes were at their peak */
};

struct incstack__cct_node {
	uint64_t code;
	uint32_t parent;
	uint32_t depth; /* the root has 0 */
	uint32_t first_child;
	uint32_t sibling;
	bool by_pointer; /* its code has no unwind rule: its caller was found by the frame pointer */
	uint64_t peak_number; /* the peak that values.peak belongs to */
	double calls_part;    /* the fraction of an estimate of values.calls, below 1 */
	struct incstack__cct_values values;
};

struct incstack__cct {
	struct incstack__cct_node *nodes;
	uint32_t count; /* a parent's index is smaller than its children's */
	uint32_t room;
	struct incstack__table table;
};

int incstack__cct_init(struct incstack__cct *cct);
void incstack__cct_free(struct incstack__cct *cct);
/* Finds or adds a child. Returns INCSTACK__CCT_FAILED if there is no memory. */
uint32_t incstack__cct_child(struct incstack__cct *cct, uint32_t parent, uint64_t code);
/* Returns the deepest common ancestor of two nodes. A node counts as its own ancestor. *steps is
 * how many steps the search may take, and becomes what is left of them. If they do not suffice, the
 * result is INCSTACK__CCT_FAILED. */
uint32_t incstack__cct_common(const struct incstack__cct *cct, uint32_t a, uint32_t b,
			      uint64_t *steps);

#endif
