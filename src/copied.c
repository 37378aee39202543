/* SPDX-License-Identifier: MIT
 *
 * Runtimes that copy stacks: coroutines whose frames are kept elsewhere while others run in
 * their place. Frames that seem to have gone come back then, and a return comes through a
 * thunk that was taken for unused. That is the sign: frames that were left by a jump never
 * return. After a few such returns nothing is patched any more in the runtime, and each
 * stack changes to validate, which compares what it remembers with what it finds. Until
 * then a thunk whose barrier vanished is not reused, so that the copies lead to the right
 * places.
 */
#include "internal.h"

/* A few may come from a coroutine on a part of the thread's own stack. */
enum { REVIVED_MOST = 8 };

/* A return came through a thunk that had been retired. */
void incstack__copied_note(stack *s)
{
	s->stats.revived++;
	if (s->runtime)
		atomic_fetch_add_explicit(&s->runtime->revived, 1, memory_order_relaxed);
}

/* Whether stacks are copied, as far as is known: nothing is patched any more. */
bool incstack__copied(const runtime *rt)
{
	return atomic_load_explicit(&rt->revived, memory_order_relaxed) >= REVIVED_MOST;
}

/* Changes the mode if need be: within an operation of the owner that is no sample and no
 * return. `frame` is that of the function that the owner has called. */
void incstack__copied_look(stack *s, const uintptr_t *frame)
{
	if (s->mode == INCSTACK_MODE_PATCH && incstack__copied(s->runtime))
		incstack__mode_change(s, INCSTACK_MODE_VALIDATE, frame);
}
