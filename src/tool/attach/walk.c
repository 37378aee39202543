/* SPDX-License-Identifier: MIT
 *
 * Walks the copy of a stack by the rules of the code that ran on it. The copy was made at one moment,
 * so nothing changes during the walk. The checks are those of the recorder: a wrong rule of
 * hand-written code leads to a word that is no return address, and then there is no trace.
 */
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include <incstack/incstack.h>

#include "attach.h"

/* The offset of an interrupted register from the stack pointer of the kernel's signal frame. */
#define SAVED(reg) (offsetof(ucontext_t, uc_mcontext.gregs) + (reg) * sizeof(greg_t))

/* A frame on the way. */
struct place {
	const struct tool_attach_sample *sample;
	uint64_t pc, sp, fp;
	int is_exact;
};

enum step { STEP_ON, STEP_BASE, STEP_UNKNOWN, STEP_WRONG };

static int read_word(const struct place *at, uint64_t address, uint64_t *word)
{
	const uint64_t offset = address - at->sample->sp;

	if (offset >= at->sample->bytes || at->sample->bytes - offset < sizeof(*word))
		return 0;
	memcpy(word, at->sample->copy + offset, sizeof(*word));
	return 1;
}

/* Moves to the code that a signal has interrupted. It may have run on another stack, of which there
 * is no copy. */
static enum step step_signal(struct place *at)
{
	const uint64_t frame = at->sp;

	if (!read_word(at, frame + SAVED(REG_RIP), &at->pc) ||
	    !read_word(at, frame + SAVED(REG_RBP), &at->fp) ||
	    !read_word(at, frame + SAVED(REG_RSP), &at->sp))
		return STEP_UNKNOWN;
	at->is_exact = 1;
	return STEP_ON;
}

/* Reads the caller's frame pointer. At the end of a function it may have been popped already; then it
 * is in the register, and its place lies below the stack pointer, where nothing was copied. */
static int restore_fp(struct place *at, uint64_t slot)
{
	return slot < at->sp ? at->is_exact : read_word(at, slot, &at->fp);
}

/* Moves to the caller. */
static enum step step_call(struct place *at, const struct incstack_rule *rule)
{
	const int realigned = rule->kind == INCSTACK_RULE_FP_DEREF;
	uint64_t cfa = (rule->kind == INCSTACK_RULE_SP ? at->sp : at->fp) +
		       (uint64_t)(int64_t)rule->cfa_offset;
	uint64_t slot;

	if (realigned && !read_word(at, cfa, &cfa))
		return STEP_UNKNOWN;
	slot = cfa - rule->ra_offset;
	if (cfa <= at->sp || slot < at->sp || slot % sizeof(uint64_t) != 0)
		return STEP_WRONG;
	if (!read_word(at, slot, &at->pc))
		return STEP_UNKNOWN;
	if ((rule->fp_offset != 0 || realigned) &&
	    !restore_fp(at, (realigned ? at->fp : cfa) - rule->fp_offset))
		return STEP_UNKNOWN;
	at->sp = cfa;
	at->is_exact = 0;
	return at->pc == 0 ? STEP_BASE : STEP_ON;
}

static enum step step(struct place *at, const struct incstack_rule *rule)
{
	if (rule->kind == INCSTACK_RULE_END)
		return STEP_BASE;
	return rule->kind == INCSTACK_RULE_SIGNAL ? step_signal(at) : step_call(at, rule);
}

/* Where a trace ends, and why, is noted in its last frame. */
static enum incstack__tick end_at(struct tool_attach_frame *last, enum step step)
{
	last->flags |= step == STEP_BASE ? INCSTACK_OBJECT_BASE : INCSTACK_OBJECT_TRUNCATED;
	return INCSTACK__TICK_TAKEN;
}

static enum incstack__tick walk(struct tool_attach_space *space, struct place at,
				struct tool_attach_frame *frames, size_t *count)
{
	enum { CHECKED = 2 }; /* frames whose callers must be right; otherwise there is no trace */
	enum tool_attach_code code;
	struct incstack_rule rule;
	enum step to = STEP_ON;

	for (size_t i = 0;; i++) {
		code = tool_attach_space_rule(space, at.pc, at.is_exact, &rule);
		if (i == 0 && (code == TOOL_ATTACH_NO_CODE || code == TOOL_ATTACH_NO_CALL))
			return INCSTACK__TICK_NO_RULE;
		if (code == TOOL_ATTACH_NO_CODE || code == TOOL_ATTACH_NO_CALL)
			return i <= CHECKED ? INCSTACK__TICK_INEXACT
					    : end_at(&frames[i - 1], STEP_WRONG);
		frames[i] = (struct tool_attach_frame){
			at.pc, at.sp,
			INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW |
				(at.is_exact ? INCSTACK_OBJECT_EXACT : 0u)};
		*count = i + 1;
		if (code == TOOL_ATTACH_NO_RULE || *count == TOOL_ATTACH_FRAMES)
			return end_at(&frames[i], STEP_UNKNOWN);
		if (rule.kind == INCSTACK_RULE_SIGNAL)
			frames[i].flags |= INCSTACK_OBJECT_SIGNAL;
		to = step(&at, &rule);
		if (to == STEP_WRONG && i < CHECKED)
			return INCSTACK__TICK_INEXACT;
		if (to != STEP_ON)
			return end_at(&frames[i], to);
	}
}

/* Walks from there, if the thread ran 64-bit code. */
static enum incstack__tick walk_from(struct tool_attach_space *space, struct place at,
				     struct tool_attach_frame *frames, size_t *count)
{
	enum incstack__tick what = INCSTACK__TICK_NO_RULE;

	*count = 0;
	tool_attach_space_begin(space);
	if (at.sample->is_native)
		what = walk(space, at, frames, count);
	if (what != INCSTACK__TICK_TAKEN)
		*count = 0;
	return what;
}

enum incstack__tick tool_attach_walk(struct tool_attach_space *space,
				     const struct tool_attach_sample *sample,
				     struct tool_attach_frame *frames, size_t *count)
{
	const struct place top = {sample, sample->pc, sample->sp, sample->fp, 1};

	return walk_from(space, top, frames, count);
}

enum incstack__tick tool_attach_walk_callers(struct tool_attach_space *space,
					     const struct tool_attach_sample *sample,
					     struct tool_attach_frame *frames, size_t *count)
{
	struct place caller = {sample, 0, sample->sp + sizeof(uint64_t), sample->fp, 0};

	if (!read_word(&caller, sample->sp, &caller.pc))
		caller.pc = 0; /* no code */
	return walk_from(space, caller, frames, count);
}
