/* SPDX-License-Identifier: MIT
 *
 * One step of a walk: from a frame to its caller, by the unwind rule of its pc.
 */
#ifndef INCSTACK__UNWIND_H
#define INCSTACK__UNWIND_H

#include "kind.h"
#include "step.h"

/* What a step needs: rules, and memory that may be read. */
struct stepper {
	runtime *rt;
	uintptr_t low, high;   /* a stack; equal if its bounds are unknown */
	struct mapped *mapped; /* outside of it */
	enum ask ask;
};
struct walker {
	struct stepper steps;
	stack *stack;
	bool grow;            /* whether the arena may grow */
	uint32_t distance;    /* callers to capture before a barrier is planted */
	uintptr_t plant_from; /* lowest slot that may be patched */
};
packed_rule incstack__rule_of(const struct stepper *w, uintptr_t pc, bool exact);
uintptr_t incstack__position(const struct stepper *w, uintptr_t slot, uintptr_t pc);
enum step incstack__step(const struct stepper *w, struct cursor *at, uintptr_t *slot,
			 packed_rule *rule);
enum step incstack__step_by(const struct stepper *w, struct cursor *at, uintptr_t *slot,
			    packed_rule rule);
bool incstack__pass_trampoline(const struct stepper *w, struct cursor *at);
enum step incstack__caller(const struct stepper *w, struct cursor *at, packed_rule rule);

static inline struct stepper stepper_of(stack *s, enum ask ask)
{
	return (struct stepper){s->runtime, s->given.low, s->given.high, &s->mapped, ask};
}

/* Whether a frame at sp is ordinary: its caller's frame begins at cfa, which is above sp and
 * below `limit`; and the words to be read, those at cfa - 8 and at `saved`, lie in the frame
 * or at most one word below it. The fast and the general walk share this test. */
static inline bool frame_ordinary(uintptr_t sp, uintptr_t cfa, uintptr_t saved, uintptr_t limit)
{
	return cfa > sp && cfa < limit && saved + 2 * sizeof(uintptr_t) > sp;
}
/* A word of the stack, possibly in another function's red zone. The caller has checked that
 * the word lies inside the stack or is mapped (mapped.c), but not that it is aligned: a frame
 * pointer register may hold any value. */
typedef uintptr_t stack_any_word __attribute__((aligned(1), may_alias));
__attribute__((no_sanitize("address", "thread"))) static inline uintptr_t
stack_word(uintptr_t address)
{
	return *(const volatile stack_any_word *)address;
}

#endif
