/* SPDX-License-Identifier: MIT
 *
 * How an operation on a stack begins and ends.
 */
#ifndef INCSTACK__OPERATION_H
#define INCSTACK__OPERATION_H

#include "stack.h"
#include "verify.h"

int incstack__enter_slowly(stack *s, uintptr_t sp);
/* Begins an operation on s, which only its owner may do; leave() ends the operation. */
__attribute__((always_inline)) static inline int enter(stack *s)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	if (__builtin_expect(!s || s->owner != thread_self() || s->busy, 0))
		return incstack__enter_slowly(s, sp);
	s->busy = sp;
	atomic_signal_fence(memory_order_seq_cst);
	return 0;
}
/* Debug builds check the invariants at the end of each operation. */
static inline void leave(stack *s)
{
#ifdef INCSTACK_DEBUG
	s->broken += incstack__broken(s, 64) != 0;
#endif
	atomic_signal_fence(memory_order_seq_cst);
	*(volatile uintptr_t *)&s->busy = 0;
}

#endif
