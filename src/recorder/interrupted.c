/* SPDX-License-Identifier: MIT
 *
 * What is known of the code that a signal has interrupted; see interrupted.h.
 */
#define _GNU_SOURCE
#include <ucontext.h>

#include "interrupted.h"
#include "native/native.h"

struct incstack_top incstack__interrupted_top(const void *ucontext)
{
	const ucontext_t *context = ucontext;

	return (struct incstack_top){
		.pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP],
		.sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP],
		.fp = (uintptr_t)context->uc_mcontext.gregs[REG_RBP],
		.flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED,
	};
}

static int is_described(const struct incstack__record *record, const struct incstack_top *top)
{
	const struct incstack__native_bounds bounds = {record->low, record->high};

	return !incstack__trampoline_contains(top->pc) &&
	       incstack__native_is_described(incstack_native_embedder()->find_rule_quickly, bounds,
					     top) == INCSTACK__NATIVE_DESCRIBED;
}

/* The program may have left frames by a jump of its own since the last sample. While the thread runs
 * on another stack, a coroutine's or for signals, its own stack waits and is left as it is. So it is
 * if the rules do not describe the interrupted instruction, for example one of the trampoline. */
void incstack__interrupted_settle(struct incstack__record *record)
{
	const struct incstack_top *top = &record->held_top;

	if (top->sp >= record->low && top->sp < record->high && is_described(record, top))
		incstack__stack_interrupted_at(record->stack, top);
}
