/* SPDX-License-Identifier: MIT
 *
 * One step of a walk: from a frame to its caller, by the unwind rule of its pc.
 */
#ifndef INCSTACK__UNWIND_H
#define INCSTACK__UNWIND_H

#include "stack.h"

/* How the embedder may be called: never (in a signal handler, find_rule_in_handler excepted),
 * directly, or with all registers saved (from the trampoline). */
enum ask { ASK_NEVER, ASK_DIRECTLY, ASK_SAVED };

enum step { STEP_FRAME, STEP_END, STEP_UNKNOWN };
struct walker {
	stack *stack;
	enum ask ask;
	bool grow;            /* whether the arena may grow */
	uint32_t distance;    /* callers to capture before a barrier is planted */
	uintptr_t plant_from; /* lowest slot that may be patched */
};
packed_rule incstack__rule_of(const struct walker *w, uintptr_t pc, bool exact);
uintptr_t incstack__logical_pc(const struct walker *w, uintptr_t slot, uintptr_t pc);
enum step incstack__step(const struct walker *w, struct cursor *at, uintptr_t *slot,
			 packed_rule *rule);

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
