/* SPDX-License-Identifier: MIT
 *
 * Walks over the copy of a stack.
 */
#ifndef INCSTACK_TOOL_ATTACH_WALK_H
#define INCSTACK_TOOL_ATTACH_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "space.h"
#include "tracefile/format.h"

/* What was copied of a thread at one moment. */
struct tool_attach_stack {
	uint64_t pc, sp, fp;
	bool is_native;            /* whether the thread ran 64-bit code */
	const unsigned char *copy; /* of the stack from sp on */
	size_t bytes;
	/* The return addresses that the kernel has found by frame pointers, the pc first; null: none. */
	const uint64_t *chain;
	size_t chain_count;
};

struct tool_attach_frame {
	uint64_t pc, address;
	uint32_t flags; /* INCSTACK_OBJECT_* */
};
enum { TOOL_ATTACH_FRAMES = 4096 };

/* Returns TAKEN and the frames, the youngest first, or why there is no trace. */
enum incstack__tick tool_attach_walk(struct tool_attach_space *space,
				     const struct tool_attach_stack *stack,
				     struct tool_attach_frame *frames, size_t *count);
/* The same from the caller of a function that has just been entered. */
enum incstack__tick tool_attach_walk_callers(struct tool_attach_space *space,
					     const struct tool_attach_stack *stack,
					     struct tool_attach_frame *frames, size_t *count);

#endif
