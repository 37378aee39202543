/* SPDX-License-Identifier: MIT
 *
 * Walks the copy of a stack by the rules of the code that ran on it. The copy was made at one moment,
 * so nothing changes during the walk. The checks are those of the recorder: a wrong rule of
 * hand-written code leads to a word that is no return address, and then there is no trace.
 */
#include <stddef.h>
#include <string.h>

#include <incstack/incstack.h>

#include "walk.h"
#include "trace/step.h"

/* A signal frame may lead to another stack, of which there is no copy. */
static bool read_word(const void *memory, const struct cursor *at, uintptr_t address,
		      uintptr_t *word)
{
	const struct tool_attach_stack *stack = memory;
	const uint64_t offset = address - stack->sp;

	(void)at;
	if (offset >= stack->bytes || stack->bytes - offset < sizeof(*word))
		return false;
	memcpy(word, stack->copy + offset, sizeof(*word));
	return true;
}

/* Where a trace ends, and why, is noted in its last frame. */
static enum incstack__tick end_at(struct tool_attach_frame *last, enum step step)
{
	last->flags |= step == STEP_END ? INCSTACK_OBJECT_BASE : INCSTACK_OBJECT_TRUNCATED;
	return INCSTACK__TICK_TAKEN;
}

static enum incstack__tick walk(struct tool_attach_space *space,
				const struct tool_attach_stack *stack, struct cursor at,
				struct tool_attach_frame *frames, size_t *count)
{
	enum { CHECKED = 2 }; /* frames whose callers must be right; otherwise there is no trace */
	enum tool_attach_code code;
	struct incstack_rule rule;
	enum step to = STEP_FRAME;
	uintptr_t slot;

	for (size_t i = 0;; i++) {
		code = tool_attach_space_rule(space, at.pc, at.exact, &rule);
		if (i == 0 && (code == TOOL_ATTACH_NO_CODE || code == TOOL_ATTACH_NO_CALL))
			return INCSTACK__TICK_NO_RULE;
		if (code == TOOL_ATTACH_NO_CODE || code == TOOL_ATTACH_NO_CALL)
			return i <= CHECKED ? INCSTACK__TICK_INEXACT
					    : end_at(&frames[i - 1], STEP_WRONG);
		frames[i] =
			(struct tool_attach_frame){at.pc, at.sp,
						   INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW |
							   (at.exact ? INCSTACK_OBJECT_EXACT : 0u)};
		*count = i + 1;
		if (code == TOOL_ATTACH_NO_RULE || *count == TOOL_ATTACH_FRAMES)
			return end_at(&frames[i], STEP_UNKNOWN);
		if (rule.kind == INCSTACK_RULE_SIGNAL)
			frames[i].flags |= INCSTACK_OBJECT_SIGNAL;
		to = step_by_rule(read_word, stack, &at, &rule, &slot);
		if (to == STEP_WRONG && i < CHECKED)
			return INCSTACK__TICK_INEXACT;
		if (to != STEP_FRAME)
			return end_at(&frames[i], to);
	}
}

/* Walks from there, if the thread ran 64-bit code. */
static enum incstack__tick walk_from(struct tool_attach_space *space,
				     const struct tool_attach_stack *stack, struct cursor at,
				     struct tool_attach_frame *frames, size_t *count)
{
	enum incstack__tick what = INCSTACK__TICK_NO_RULE;

	*count = 0;
	tool_attach_space_begin(space);
	if (stack->is_native)
		what = walk(space, stack, at, frames, count);
	if (what != INCSTACK__TICK_TAKEN)
		*count = 0;
	return what;
}

enum incstack__tick tool_attach_walk(struct tool_attach_space *space,
				     const struct tool_attach_stack *stack,
				     struct tool_attach_frame *frames, size_t *count)
{
	const struct cursor top = {
		.pc = stack->pc, .sp = stack->sp, .fp = stack->fp, .exact = true};

	return walk_from(space, stack, top, frames, count);
}

enum incstack__tick tool_attach_walk_callers(struct tool_attach_space *space,
					     const struct tool_attach_stack *stack,
					     struct tool_attach_frame *frames, size_t *count)
{
	struct cursor caller = {.sp = stack->sp + sizeof(uint64_t), .fp = stack->fp};

	if (!read_word(stack, &caller, stack->sp, &caller.pc))
		caller.pc = 0; /* no code */
	return walk_from(space, stack, caller, frames, count);
}
