/* SPDX-License-Identifier: MIT
 *
 * Finds out which frames of a thread are gone that another thread holds; see interrupted.h.
 */
#include "interrupted.h"
#include "native/native.h"

static int is_described(const struct incstack__record *record, const struct incstack_top *top)
{
	const struct incstack__native_bounds bounds = {record->low, record->high};

	return !incstack__trampoline_contains(top->pc) &&
	       incstack__native_is_described(incstack_native_embedder()->find_rule_quickly, bounds,
					     top) == INCSTACK__NATIVE_DESCRIBED;
}

/* The program may have left frames by a jump of its own since the last sample. Nothing is done if the
 * thread runs on another stack, that of a coroutine or one for signals, because its own stack does
 * not change meanwhile. Nothing is done either if the rules do not describe the interrupted
 * instruction, which may be one of the trampoline. */
void incstack__interrupted_settle(struct incstack__record *record)
{
	const struct incstack_top *top = &record->held_top;

	if (top->sp >= record->low && top->sp < record->high && is_described(record, top))
		incstack__stack_interrupted_at(record->stack, top);
}
