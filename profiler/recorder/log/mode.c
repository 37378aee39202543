/* SPDX-License-Identifier: MIT
 *
 * Gives a stack the mode to which the recording fell back.
 */
#include <stdatomic.h>

#include "recorder/log/log.h"

/* Once the mode has changed, no rule needs to forbid barriers. So the first thread that follows
 * makes the core forget all rules, and ask for them again. The exchange of `barriers_forbidden`
 * pairs with the release in forbid_barriers() (host.c) and with the acquire in find_rule (rule.c). */
void incstack__record_follow_mode(struct incstack__record *record)
{
	struct incstack__recording *r = &incstack__recording;
	struct incstack__protection before;

	record->mode_changed = 1;
	if (record == r->shared_record)
		return;
	incstack__record_protect(&before);
	incstack_stack_set_mode(record->stack, r->mode);
	if (atomic_exchange_explicit(&r->barriers_forbidden, 0, memory_order_acq_rel))
		incstack_runtime_code_unloading(r->runtime, NULL, 0, UINTPTR_MAX);
	incstack__record_unprotect(&before);
}
