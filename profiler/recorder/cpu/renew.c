/* SPDX-License-Identifier: MIT
 *
 * Writes the batch of a CPU profile, makes room for the next, and follows the recording into another
 * mode.
 */
#include "recorder/code/code.h"
#include "recorder/cpu/ticks.h"
#include "recorder/events/events.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

static void follow(struct incstack__record *record)
{
	if (incstack__record_must_follow_mode(record))
		incstack__record_follow_mode(record);
	if (record->walker)
		incstack__record_walk_end(record);
}

void incstack__renew(struct incstack__record *record)
{
	struct incstack__protection before;

	follow(record);
	incstack__record_protect(&before);
	incstack__record_flush(record);
	incstack_stack_reserve(record->stack, INCSTACK__RESERVE_BYTES);
	record->due = 0;
	incstack__record_unprotect(&before);
}

/* The batch of an older epoch needs the lock of the modules, which a thread that forks holds for
 * long. */
void incstack__renew_in_handler(struct incstack__record *record)
{
	const bool is_older = incstack__record_is_past(record);

	if (is_older && !incstack__lock_try(INCSTACK__LOCK_MODULES))
		return;
	incstack__renew(record);
	if (is_older)
		incstack__lock_give(INCSTACK__LOCK_MODULES);
}
