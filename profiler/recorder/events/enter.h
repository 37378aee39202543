/* SPDX-License-Identifier: MIT
 *
 * How an event of a thread begins and ends: which record it uses, and what a jump out of an event
 * leaves behind (enter.c). The fast paths of events inline this.
 */
#ifndef INCSTACK_RECORDER_EVENT_H
#define INCSTACK_RECORDER_EVENT_H

#include <stdbool.h>
#include <stdatomic.h>

#include "recorder/code/code.h"
#include "recorder/events/events.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

#define HERE ((uintptr_t)__builtin_frame_address(0))

/* As HERE, but the function needs no frame pointer. */
static inline __attribute__((always_inline)) uintptr_t stack_pointer(void)
{
	uintptr_t sp;

	__asm__ volatile("movq %%rsp, %0" : "=r"(sp));
	return sp;
}

/* Ends the event in progress if a jump has left it. `sp` is the stack pointer of the thread, now or
 * after a jump. Returns true if no event is in progress now. */
bool incstack__event_end_left(uintptr_t sp);
/* Called where no event could begin. If the reason is that a signal handler has interrupted an
 * event, whose record is in use, the lost event is counted. */
void incstack__event_count_interrupting(void);
/* Takes the lock. Returns the record of the context whose stack contains the address, or else the
 * shared record. */
struct incstack__record *incstack__event_lock_record(uintptr_t at);
/* Continues an event of a thread that has no record. Returns what incstack__event_lock_record() returns, or
 * null. */
struct incstack__record *incstack__event_enter_shared(void);

/* Whether the address is on the stack that the thread's record describes. The stack of a context
 * has a record of its own. An unknown stack may not be patched, so the shared record walks it
 * fully. */
static inline bool is_on(const struct incstack__record *record, uintptr_t at)
{
	return at >= record->low && at < record->high;
}

/* Whether an event of the calling thread may take the fast path. `record` is that thread's record.
 * relaxed: see struct incstack__recording. */
static inline bool is_quick(const struct incstack__record *record)
{
	return record && record->log.used < record->quick &&
	       record->changes ==
		       atomic_load_explicit(&incstack__recording.changes, memory_order_relaxed);
}

/* Between begin() and end(), a signal handler starts no event of its own. Only a jump can leave the
 * code between them (incstack__event_end_left). */
static inline void begin(uintptr_t sp)
{
	incstack__record_local.state = sp;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void end(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	incstack__record_local.state = 0;
}

/* Counts an event that is not recorded because it interrupted another event. */
static inline void count_missing(const struct incstack__record *record)
{
	atomic_fetch_add_explicit(&record->slot->interrupting, 1, memory_order_relaxed);
}

/* Begins an event. Returns the calling thread's record, or the shared record with the recording's
 * lock held, or null. */
static inline struct incstack__record *enter(void)
{
	const uintptr_t sp = HERE;
	struct incstack__record *record;

	if (!atomic_load_explicit(&incstack__recording.on, memory_order_relaxed) &&
	    !incstack__record_begin_late())
		return NULL;
	if (incstack__record_local.state != 0 && !incstack__event_end_left(sp))
		return NULL;
	begin(sp);
	if (!atomic_load_explicit(&incstack__recording.on, memory_order_relaxed)) {
		end(); /* a handler has forked before begin(), and this child has no recording */
		return NULL;
	}
	if (incstack__record_is_unloading())
		incstack__record_modules();
	record = incstack__record_self();
	return record ? record : incstack__event_enter_shared();
}

static inline void leave(const struct incstack__record *record)
{
	if (record == incstack__recording.shared_record) {
		incstack__lock_give(INCSTACK__LOCK_RECORDING);
		incstack__record_end_unlisted();
	}
	end();
}

#endif
