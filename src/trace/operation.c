/* SPDX-License-Identifier: MIT
 *
 * The checks with which every operation on a stack begins: its owner, and whether another
 * operation is in progress or was left by a jump.
 */
#include "kind.h"
#include "operation.h"
#include "reset.h"

/* Whether the operation that began at `before` was left, given that another operation begins at sp.
 * An operation that begins within it, in a callback or in a signal handler, is at least four words
 * below it: a return address and a saved register of each of two calls. An operation at the same
 * depth is not within it, although incstack_stack_sample notes its depth up to two words higher
 * than its slow path. */
static bool was_left(const stack *s, uintptr_t before, uintptr_t sp)
{
	return s->kind->left_behind(s, before, sp + 3 * sizeof(uintptr_t));
}

int incstack__enter_slowly(stack *s, uintptr_t sp)
{
	if (!s)
		return INCSTACK_EINVAL;
	if (s->owner != thread_self())
		return INCSTACK_ETHREAD;
	uintptr_t before = s->busy;
	if (before && !was_left(s, before, sp)) {
		s->stats.lost_busy++;
		return INCSTACK_EBUSY;
	}
	s->busy = sp;
	atomic_signal_fence(memory_order_seq_cst);
	if (before)
		incstack__reset_stack(s, true);
	return 0;
}
