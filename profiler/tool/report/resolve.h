/* SPDX-License-Identifier: MIT
 *
 * Makes the block of a trace file that has the names, lines and inlined functions of all its codes.
 */
#ifndef INCSTACK_TOOL_RESOLVE_H
#define INCSTACK_TOOL_RESOLVE_H

#include <stddef.h>

#include "tracefile/cct.h"
#include "symbols.h"

/* A block, of malloc; all zero: there is none. */
struct tool_resolved {
	void *block;
	size_t bytes;
};

/* Looks up all codes of the tree, and makes the block. Returns 0 or INCSTACK_E*. */
int tool_resolve(struct tool_symbols *symbols, const struct incstack__cct *cct,
		 struct tool_resolved *resolved);

#endif
