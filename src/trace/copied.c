/* SPDX-License-Identifier: MIT
 *
 * Detects runtimes that copy stacks, for example for coroutines whose frames are kept elsewhere
 * while others run in their place. There, frames that seemed to be gone come back, and a
 * return comes through a retired thunk. Such a return is the sign of a copied stack, because
 * frames that were left by a jump never return. After a few such returns, nothing is patched
 * any more in this runtime, and each stack changes to mode validate, which compares what it
 * remembers with the stack. Before that, a thunk whose barrier vanished is not reused once
 * such a return was seen, so that the copies still return to the right addresses.
 */
#include "internal.h"

/* Fewer such returns may come from a coroutine that uses a part of the thread's own stack. */
enum { REVIVED_MOST = 8 };

/* Counts a return through a retired thunk. */
void incstack__copied_note(stack *s)
{
	s->stats.revived++;
	if (s->runtime)
		atomic_fetch_add_explicit(&s->runtime->revived, 1, memory_order_relaxed);
}

/* Whether the runtime is known to copy stacks, so that nothing must be patched any more. */
bool incstack__copied(const runtime *rt)
{
	return atomic_load_explicit(&rt->revived, memory_order_relaxed) >= REVIVED_MOST;
}

/* Changes the mode if stacks are copied. Called within an operation of the owner that is neither
 * a sample nor a return. `frame` is the frame of the public function that the owner called. */
void incstack__copied_look(stack *s, const uintptr_t *frame)
{
	if (s->mode == INCSTACK_MODE_PATCH && incstack__copied(s->runtime))
		incstack__mode_change(s, INCSTACK_MODE_VALIDATE, frame);
}
