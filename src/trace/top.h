/* SPDX-License-Identifier: MIT
 *
 * The door of all walks over machine stacks: which frame is really at a top.
 */
#ifndef INCSTACK__TOP_H
#define INCSTACK__TOP_H

#include "thunks.h"
#include "unwind.h"

bool incstack__top_is_valid(const struct incstack_top *top);
struct cursor incstack__top_frame(const struct stepper *w, const struct incstack_top *top);
object *incstack__top_enter_return(stack *s, const struct incstack_top *top, struct cursor *at);

/* Which frame is at the top of a sample, within its operation. Returns the object of the top if the top
 * and all its callers are known. */
static inline object *top_enter(stack *s, const struct incstack_top *top, struct cursor *at)
{
	const uint32_t exact = top->flags & (INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED);
	*at = (struct cursor){.pc = top->pc, .sp = top->sp, .fp = top->fp, .exact = exact};
	const bool returns = exact ? incstack__trampoline_contains(top->pc) : is_thunk(top->pc);
	return __builtin_expect(returns, 0) ? incstack__top_enter_return(s, top, at) : NULL;
}

#endif
