/* SPDX-License-Identifier: MIT
 *
 * Detects runtimes that copy stacks, for example for coroutines whose frames are kept elsewhere
 * while others run in their place. There, frames that seemed to be gone come back, and a return
 * comes through a retired thunk. Such a return is the sign of a copied stack, because frames that
 * were left by a jump never return. After a few such returns, nothing more is patched in this
 * runtime, and each stack changes to mode validate, which compares what it remembers with the
 * stack. Before that, a thunk whose barrier vanished is not reused once such a return was seen, so
 * that the copies still return to the right addresses.
 */
#include "barrier.h"

/* Counts a return through a retired thunk. */
void incstack__copied_note(stack *s)
{
	s->stats.revived++;
	if (s->runtime)
		atomic_fetch_add_explicit(&s->runtime->revived, 1, memory_order_relaxed);
}
