/* SPDX-License-Identifier: MIT
 *
 * The checks with which every operation on a stack begins: its owner, and whether another
 * operation is in progress or was left by a jump.
 */
#include "operation.h"
#include "reset.h"

int incstack__enter_slowly(stack *s, uintptr_t sp)
{
	if (!s)
		return INCSTACK_EINVAL;
	if (s->owner != thread_self())
		return INCSTACK_ETHREAD;
	uintptr_t before = s->busy;
	if (before && !incstack__left_behind(s, before, sp)) {
		s->stats.lost_busy++;
		return INCSTACK_EBUSY;
	}
	s->busy = sp;
	atomic_signal_fence(memory_order_seq_cst);
	if (before)
		incstack__reset_stack(s, true);
	return 0;
}
