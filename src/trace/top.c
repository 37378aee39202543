/* SPDX-License-Identifier: MIT
 *
 * Which frame is really at a top. The trampoline may be serving a return there, or a tail call may have
 * left a thunk of ours in the place of a return address. Every walk over a machine stack asks once, here,
 * and then begins at a frame of the host.
 */
#include "top.h"
#include "walk.h"

bool incstack__top_is_valid(const struct incstack_top *top)
{
	return top->pc && top->sp % sizeof(uintptr_t) == 0 &&
	       !(top->flags & INCSTACK_TOP_DECODE_NOW);
}

/* The frame at the top. If a return is being served there, it is the frame that runs next. Its pc is 0 if
 * that frame is unknown. */
struct cursor incstack__top_frame(const struct stepper *w, const struct incstack_top *top)
{
	const uint32_t exact = INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED;
	struct cursor at = {
		.pc = top->pc, .sp = top->sp, .fp = top->fp, .exact = top->flags & exact};
	if (at.exact)
		incstack__pass_trampoline(w, &at);
	else if (is_thunk(at.pc))
		at.pc = thunk_cell(at.pc)->resume;
	return at;
}

/* The barrier of the frame `at` is passed now, as the interrupted trampoline would do. */
static void finish_return(stack *s, const struct cursor *at)
{
	const struct walker w = {stepper_of(s, ASK_NEVER), s, false, s->distance.value, 0};
	object *known = s->newest;
	if (incstack__finish_return(&w, &known, at))
		set_newest(s, known);
}

/* top_enter() where a return may be in progress. The object is known if the sampling function was reached
 * by a tail call from a function whose return is intercepted, so that it has found the barrier's thunk in
 * its own return slot. An equal position without the thunk would prove nothing, because the slot may be
 * dead. */
object *incstack__top_enter_return(stack *s, const struct incstack_top *top, struct cursor *at)
{
	struct mapped mapped = {0, 0};
	const struct stepper w = {s->runtime, s->given.low, s->given.high, &mapped, ASK_NEVER};
	*at = incstack__top_frame(&w, top);
	if (__builtin_expect(at->pc == top->pc, 1))
		return NULL;
	if (top->flags & INCSTACK_TOP_INTERRUPTED)
		finish_return(s, at);
	else if (top->pc == s->newest_thunk && top->sp == s->newest->address)
		return s->newest;
	return NULL;
}
