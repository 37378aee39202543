/* SPDX-License-Identifier: MIT
 *
 * What is known of the code that a signal has interrupted; see interrupted.h.
 */
#include "interrupted.h"

enum incstack__native_described
incstack__interrupted_is_described(const struct incstack__record *record,
				   const struct incstack_top *top)
{
	return incstack__native_is_described(
		incstack__record_find_rule,
		(struct incstack__native_bounds){record->low, record->high}, top);
}

bool incstack__interrupted_is_settleable(const struct incstack__record *record,
					 const struct incstack_top *top)
{
	return !incstack__trampoline_contains(top->pc) &&
	       incstack__interrupted_is_described(record, top) == INCSTACK__NATIVE_DESCRIBED;
}

/* The program may have left frames by a jump of its own since the last sample, and then have
 * switched to the stack of a coroutine. Ticks also interrupt the unwinder of an exception, which
 * skips barriers in return slots that it has already read. So if the rules do not lead from the
 * interrupted instruction to the stack, it is unknown which of its frames are left, and all are
 * forgotten. */
void incstack__interrupted_settle(struct incstack__record *record, const struct incstack_top *top)
{
	if (!incstack__interrupted_is_settleable(record, top))
		top = NULL;
	incstack__stack_interrupted_at(record->stack, top);
}
