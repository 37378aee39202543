/* SPDX-License-Identifier: MIT
 *
 * The step from a frame to its caller by an unwind rule. A function of the walk reads the words, so the
 * step serves walks over stacks of this process and over copies of stacks of others.
 */
#ifndef INCSTACK__STEP_H
#define INCSTACK__STEP_H

#include <incstack/embedder.h>

#include "arch/arch.h"

enum step {
	STEP_FRAME,
	STEP_END,     /* there is no caller */
	STEP_UNKNOWN, /* there is no rule, or a word cannot be read */
	STEP_WRONG,   /* no return slot can be where the rule leads */
};

/* The maximum number of steps of a trace by rules that are guesses (INCSTACK_RULE_BY_POINTER). */
enum { INCSTACK__POINTER_STEPS = 256 };

/* Reads a word for the step from the frame `at`. Returns false if that word cannot be read. */
typedef bool incstack__read_word(const void *memory, const struct cursor *at, uintptr_t address,
				 uintptr_t *word);

/* Moves to the frame that a signal has interrupted. */
__attribute__((always_inline)) static inline enum step
step_signal(incstack__read_word *read, const void *memory, struct cursor *at)
{
	struct cursor to = {.exact = true, .signal = true};
	if (!read(memory, at, at->sp + INCSTACK__SIGNAL_PC, &to.pc) ||
	    !read(memory, at, at->sp + INCSTACK__SIGNAL_SP, &to.sp) ||
	    !read(memory, at, at->sp + INCSTACK__SIGNAL_FP, &to.fp))
		return STEP_UNKNOWN;
	*at = to;
	return STEP_FRAME;
}

/* Moves to the frame that has called. At the end of a function its frame pointer may have been restored
 * already. Then it is in the register, and the word at `saved` lies below the frame. */
__attribute__((always_inline)) static inline enum step
step_call(incstack__read_word *read, const void *memory, struct cursor *at,
	  const struct incstack_rule *rule, uintptr_t *slot)
{
	const bool realigned = rule->kind == INCSTACK_RULE_FP_DEREF;
	const uintptr_t base = rule->kind == INCSTACK_RULE_SP ? at->sp : at->fp;
	uintptr_t cfa = base + (uintptr_t)(intptr_t)rule->cfa_offset, pc, fp = at->fp;
	if (realigned && !read(memory, at, cfa, &cfa))
		return STEP_UNKNOWN;
	*slot = cfa - rule->ra_offset;
	if (cfa <= at->sp || *slot < at->sp || *slot % sizeof(uintptr_t))
		return STEP_WRONG;
	if (!read(memory, at, *slot, &pc))
		return STEP_UNKNOWN;
	const uintptr_t saved = (realigned ? at->fp : cfa) - rule->fp_offset;
	const bool restored = saved < at->sp;
	if ((rule->fp_offset || realigned) && !(restored && at->exact) &&
	    (restored || !read(memory, at, saved, &fp)))
		return STEP_UNKNOWN;
	*at = (struct cursor){.pc = pc, .sp = cfa, .fp = fp};
	return pc ? STEP_FRAME : STEP_END;
}

/* Moves *at to its caller. *slot becomes the return slot, or 0 if the caller was interrupted by a signal
 * and so has none. */
__attribute__((always_inline)) static inline enum step
step_by_rule(incstack__read_word *read, const void *memory, struct cursor *at,
	     const struct incstack_rule *rule, uintptr_t *slot)
{
	*slot = 0;
	switch (rule->kind) {
	case INCSTACK_RULE_SP:
	case INCSTACK_RULE_FP:
	case INCSTACK_RULE_FP_DEREF:
		return step_call(read, memory, at, rule, slot);
	case INCSTACK_RULE_SIGNAL:
		return step_signal(read, memory, at);
	case INCSTACK_RULE_END:
		return STEP_END;
	default:
		return STEP_UNKNOWN;
	}
}

#endif
