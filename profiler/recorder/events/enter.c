/* SPDX-License-Identifier: MIT
 *
 * The slow ways into an event, and what a jump out of an event leaves behind.
 */
#include <stdatomic.h>

#include "recorder/code/code.h"
#include "recorder/events/enter.h"
#include "recorder/log/check.h"

/* Ends the event in progress if a jump has left it. `sp` is the stack pointer of the thread, now or
 * after a jump. The jump has left the event if the event's frame is gone at this stack pointer. A
 * sample that the event began is lost. Returns true if no event is in progress now. */
bool incstack__event_end_left(uintptr_t sp)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	const uintptr_t entered = incstack__record_local.state;
	struct incstack__record *record = incstack__record_local.mine;

	if (entered == 0 || entered == INCSTACK__INSIDE)
		return false;
	if (!record) { /* it was the thread's first event, and nothing is open */
		if (entered < sp)
			incstack__record_local.state = 0;
		return entered < sp;
	}
	if (sp < record->low || sp >= record->high || (entered >= sp && entered < record->high))
		return false;
	incstack_stack_unwinding_to(record->stack, sp);
	incstack_stack_stats(record->stack, &stats);
	while (record->traces < stats.samples - record->retrieved) {
		if (record->check)
			incstack__record_check_skip(record, record->traces);
		record->traces++;
	}
	incstack__record_local.state = 0;
	return true;
}

/* Called where no event could begin. If the reason is that a signal handler has interrupted an
 * event, whose record is in use, the lost event is counted. */
void incstack__event_count_interrupting(void)
{
	const uintptr_t state = incstack__record_local.state;

	if (state != 0 && state != INCSTACK__INSIDE && incstack__record_local.mine &&
	    atomic_load_explicit(&incstack__recording.on, memory_order_relaxed))
		count_missing(incstack__record_local.mine);
}

/* Returns the record of the context whose stack contains the address, or else the shared record. */
static struct incstack__record *find_locked(uintptr_t at)
{
	struct incstack__record *record = at != 0 ? incstack__record_context(at) : NULL;

	if (record)
		return record;
	incstack__record_share();
	return incstack__recording.shared_record;
}

/* Takes the lock, and returns the record that find_locked() returns. If the event may write a
 * batch, modules are checked first, without the lock. */
struct incstack__record *incstack__event_lock_record(uintptr_t at)
{
	struct incstack__record *record;

	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	record = find_locked(at);
	if (!incstack__record_is_full(record) && record->log.used < record->look)
		return record;
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__record_modules();
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	return find_locked(at);
}

/* Continues an event of a thread that has no record. */
struct incstack__record *incstack__event_enter_shared(void)
{
	struct incstack__record *record;

	incstack__record_local.state = INCSTACK__INSIDE; /* no jump may leave the lock held */
	if (incstack__record_begin_unlisted()) {
		record = incstack__event_lock_record(0);
		if (record->stack && incstack_stack_set_owner(record->stack) == 0)
			return record;
		incstack__lock_give(INCSTACK__LOCK_RECORDING);
		incstack__record_end_unlisted();
	}
	end();
	return NULL;
}
