/* SPDX-License-Identifier: MIT
 *
 * The code of the process: its modules, and the unwind rule of each pc.
 */
#ifndef INCSTACK_TOOL_ATTACH_SPACE_H
#define INCSTACK_TOOL_ATTACH_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/embedder.h>

#include "image.h"
#include "trace/step.h"

struct tool_attach_space;

enum tool_attach_code {
	TOOL_ATTACH_RULE,
	TOOL_ATTACH_NO_RULE,
	TOOL_ATTACH_NO_CALL, /* no return address: it does not follow a call */
	TOOL_ATTACH_NO_CODE,
};

struct tool_attach_space *tool_attach_space_new(void);
void tool_attach_space_free(struct tool_attach_space *space); /* also null */
/* Reads which code is mapped now. Returns non-zero if that is impossible. */
int tool_attach_space_read(struct tool_attach_space *space);
/* Code was mapped, in place of earlier code. Returns whether the modules have changed. */
bool tool_attach_space_map(struct tool_attach_space *space,
			   const struct tool_attach_mapping *mapping);
/* How many mappings of code had no room in the lists, or no room for a copy. */
uint64_t tool_attach_space_left_out(const struct tool_attach_space *space);
/* A walk begins, which may do a limited amount of work. */
void tool_attach_space_begin(struct tool_attach_space *space);
/* Nothing is mapped any more. */
void tool_attach_space_clear(struct tool_attach_space *space);
const struct tool_attach_module *tool_attach_space_modules(const struct tool_attach_space *space,
							   size_t *count);
/* The module whose code has the address; null: none. */
const struct tool_attach_module *tool_attach_space_module(const struct tool_attach_space *space,
							  uint64_t address);
/* Returns the bytes of code at an address, or null. They are valid until something is mapped. */
const unsigned char *tool_attach_space_code(const struct tool_attach_space *space, uint64_t address,
					    size_t bytes);
/* Finds the rule of an interrupted instruction whose rule is a guess, from its code and its stack. */
struct incstack_rule tool_attach_space_guess(struct tool_attach_space *space,
					     const struct cursor *at, incstack__read_word *word,
					     const void *stack);
/* Finds the rule of a pc: of an interrupted instruction (is_exact), or a return address. */
enum tool_attach_code tool_attach_space_rule(struct tool_attach_space *space, uint64_t pc,
					     bool is_exact, struct incstack_rule *rule);

#endif
