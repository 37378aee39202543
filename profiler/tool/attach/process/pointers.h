/* SPDX-License-Identifier: MIT
 *
 * Steps by frame pointers, where the process has no unwind rule for its code.
 */
#ifndef INCSTACK_TOOL_ATTACH_POINTERS_H
#define INCSTACK_TOOL_ATTACH_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <incstack/embedder.h>

#include "space.h"
#include "trace/step.h"

/* The memory of the process. */
struct tool_attach_memory {
	int fd; /* -1: not open; -2: it cannot be opened */
};
enum { TOOL_ATTACH_MEMORY_CLOSED = -1, TOOL_ATTACH_MEMORY_DENIED = -2 };

void tool_attach_memory_close(struct tool_attach_memory *memory);

/* Finds the rule of an interrupted instruction from its code and its stack. */
struct incstack_rule tool_attach_pointer_rule(struct tool_attach_memory *memory,
					      const struct tool_attach_module *module,
					      const struct cursor *at, incstack__read_word *word,
					      const void *stack);

/* Finds the rule of a pc whose code no table describes: of an interrupted instruction (is_exact), or a return
 * address. `module` has the code, or is null. NO_RULE: the code cannot be read. */
enum tool_attach_code tool_attach_pointer_find(struct tool_attach_memory *memory,
					       const struct tool_attach_module *module, uint64_t pc,
					       bool is_exact, struct incstack_rule *rule);

#endif
