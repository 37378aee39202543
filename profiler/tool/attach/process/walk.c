/* SPDX-License-Identifier: MIT
 *
 * Walks the copy of a stack by the rules of the code that ran on it. The copy was made at one moment,
 * so nothing changes during the walk. The checks are those of the recorder: a wrong rule of
 * hand-written code leads to a word that is no return address, and then there is no trace.
 */
#include <stddef.h>
#include <string.h>

#include <incstack/incstack.h>

#include "trace/step.h"
#include "walk.h"

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

enum { CHECKED = 2 }; /* frames whose callers must be right; otherwise there is no trace */

/* Where a trace ends, and why, is noted in its last frame. */
static enum incstack__tick end_at(struct tool_attach_frame *last, enum step step)
{
	last->flags |= step == STEP_END ? INCSTACK_OBJECT_BASE : INCSTACK_OBJECT_TRUNCATED;
	return INCSTACK__TICK_TAKEN;
}

/* The last step has led from frame `i - 1` to what is no code behind a call. The frame pointer of the outermost
 * frame is 0, and Go lets it return to an address that does not stand behind a call. */
static enum incstack__tick end_before(struct tool_attach_frame *frames, size_t i,
				      const struct cursor *at)
{
	if (i == 0)
		return INCSTACK__TICK_NO_RULE;
	if (frames[i - 1].flags & INCSTACK_OBJECT_POINTER)
		return end_at(&frames[i - 1], at->fp == 0 ? STEP_END : STEP_WRONG);
	return i <= CHECKED ? INCSTACK__TICK_INEXACT : end_at(&frames[i - 1], STEP_WRONG);
}

static uint32_t flags_of(const struct cursor *at, enum tool_attach_code code,
			 const struct incstack_rule *rule)
{
	uint32_t flags = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW;

	if (at->exact)
		flags |= INCSTACK_OBJECT_EXACT;
	if (code == TOOL_ATTACH_RULE && rule->kind == INCSTACK_RULE_SIGNAL)
		flags |= INCSTACK_OBJECT_SIGNAL;
	if (code == TOOL_ATTACH_RULE && rule->flags & INCSTACK_RULE_BY_POINTER)
		flags |= INCSTACK_OBJECT_POINTER;
	return flags;
}

/* How a walk has come to a frame. */
struct progress {
	size_t guesses; /* steps by frame pointers, of all kinds */
	size_t words;   /* those of them that took a word of the kernel's chain */
};

/* Moves to the caller. A chain of frame pointers ends with 0. */
static enum step step_from(const struct tool_attach_stack *stack, struct cursor *at,
			   const struct incstack_rule *rule, struct progress *progress)
{
	struct cursor to = *at;
	uintptr_t slot;
	enum step step;

	if (!(rule->flags & INCSTACK_RULE_BY_POINTER))
		return step_by_rule(read_word, stack, at, rule, &slot);
	if (rule->kind == INCSTACK_RULE_FP && at->fp == 0)
		return STEP_END;
	if (progress->guesses == INCSTACK__POINTER_STEPS ||
	    (rule->kind == INCSTACK_RULE_FP && at->fp < at->sp))
		return STEP_WRONG;
	step = step_by_rule(read_word, stack, &to, rule, &slot);
	if (step != STEP_FRAME)
		return step == STEP_END && to.fp == 0 ? STEP_END : STEP_WRONG;
	*at = to;
	progress->guesses++;
	progress->words += rule->kind == INCSTACK_RULE_FP;
	return STEP_FRAME;
}

/* Whether the callers of frame i lie on another stack, of which there is no copy, and the kernel has found them: the
 * runtime of Go runs on a stack of its own, whose oldest frame points to the stack of the goroutine. All steps so far
 * must be those of the kernel. */
static bool goes_elsewhere(const struct tool_attach_stack *stack, const struct cursor *at,
			   const struct incstack_rule *rule, const struct progress *progress,
			   size_t i)
{
	const size_t next = progress->words + 1;

	return rule->flags & INCSTACK_RULE_BY_POINTER && rule->kind == INCSTACK_RULE_FP &&
	       at->fp % sizeof(uint64_t) == 0 && at->fp - stack->sp >= stack->bytes &&
	       progress->guesses == i && next < stack->chain_count &&
	       (progress->words == 0 || stack->chain[next - 1] == at->pc);
}

/* Adds the callers that the kernel has found, as long as frame pointers are all that is known of them. */
static enum incstack__tick follow(struct tool_attach_space *space,
				  const struct tool_attach_stack *stack, size_t next,
				  struct tool_attach_frame *frames, size_t *count)
{
	const size_t first = next;
	struct incstack_rule rule;

	for (; next < stack->chain_count; next++) {
		const struct cursor at = {.pc = stack->chain[next]};
		const enum tool_attach_code code =
			tool_attach_space_rule(space, at.pc, false, &rule);
		struct tool_attach_frame *frame = &frames[*count];

		if (*count == INCSTACK__POINTER_STEPS)
			return end_at(frame - 1, STEP_WRONG);
		if (code == TOOL_ATTACH_NO_CODE || code == TOOL_ATTACH_NO_CALL)
			return end_at(frame - 1, next > first && next + 1 == stack->chain_count
							 ? STEP_END
							 : STEP_WRONG);
		*frame = (struct tool_attach_frame){at.pc, 0, flags_of(&at, code, &rule)};
		++*count;
		if (!(frame->flags & INCSTACK_OBJECT_POINTER))
			return end_at(frame, STEP_UNKNOWN);
	}
	return end_at(&frames[*count - 1], STEP_END);
}

static enum incstack__tick walk(struct tool_attach_space *space,
				const struct tool_attach_stack *stack, struct cursor at,
				struct tool_attach_frame *frames, size_t *count)
{
	struct progress progress = {0, 0};
	enum tool_attach_code code;
	struct incstack_rule rule;
	enum step to = STEP_FRAME;

	for (size_t i = 0;; i++) {
		code = tool_attach_space_rule(space, at.pc, at.exact, &rule);
		if (code == TOOL_ATTACH_NO_CODE || code == TOOL_ATTACH_NO_CALL)
			return end_before(frames, i, &at);
		frames[i] = (struct tool_attach_frame){at.pc, at.sp, flags_of(&at, code, &rule)};
		*count = i + 1;
		if (code == TOOL_ATTACH_NO_RULE || *count == TOOL_ATTACH_FRAMES)
			return end_at(&frames[i], STEP_UNKNOWN);
		if (at.exact && frames[i].flags & INCSTACK_OBJECT_POINTER)
			rule = tool_attach_space_guess(space, &at, read_word, stack);
		to = step_from(stack, &at, &rule, &progress);
		if (to == STEP_WRONG && goes_elsewhere(stack, &at, &rule, &progress, i))
			return follow(space, stack, progress.words + 1, frames, count);
		if (to == STEP_WRONG && i < CHECKED && !(frames[i].flags & INCSTACK_OBJECT_POINTER))
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
