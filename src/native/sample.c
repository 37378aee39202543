/* SPDX-License-Identifier: MIT
 *
 * Samples whose top need not be given: it is the caller, or the code that a signal
 * interrupted.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <ucontext.h>

#include <incstack/native.h>

#include "native/native.h"

__attribute__((noinline)) int incstack_native_sample(struct incstack_stack *stack, uint64_t id,
						     uint64_t weight)
{
	const struct incstack_top top = incstack__native_caller_top(__builtin_frame_address(0));

	return incstack_sample(stack, id, weight, &top);
}

struct incstack_top incstack__native_interrupted_top(const void *ucontext)
{
	const ucontext_t *context = ucontext;

	return (struct incstack_top){
		.pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP],
		.sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP],
		.fp = (uintptr_t)context->uc_mcontext.gregs[REG_RBP],
		.flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED,
	};
}

int incstack_native_interrupted(void *context, const struct incstack_interruption *at,
				struct incstack_top *top)
{
	(void)context;
	if (!at || !at->ucontext || !top)
		return INCSTACK_EINVAL;
	*top = incstack__native_interrupted_top(at->ucontext);
	if (incstack__trampoline_contains(top->pc))
		return 1;
	return incstack__native_finds_in_handlers &&
	       incstack__native_is_described(incstack__native_find_rule_quickly,
					     (struct incstack__native_bounds){at->low, at->high},
					     top) == INCSTACK__NATIVE_DESCRIBED;
}

__attribute__((noinline)) int incstack_native_queue_drain(struct incstack_stack *stack)
{
	const struct incstack_top top = incstack__native_caller_top(__builtin_frame_address(0));

	return incstack_queue_drain(stack, &top);
}
