/* SPDX-License-Identifier: MIT
 *
 * Makes room for the next event of a thread. Now and then it also reads the clock, writes a
 * batch, or walks callers that were left open.
 */
#include <stdatomic.h>
#include <time.h>

#include "recorder/code/code.h"
#include "recorder/events/events.h"
#include "recorder/log/check.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "recorder/log/stamp.h"

enum {
	LOOK_AFTER_BYTES = 1024,
	FLUSH_AFTER_NS = 100 * 1000 * 1000,
	COMPLETE_AFTER_TICKS = 1 << 21, /* of the time-stamp counter, some 1 ms */
};

/* Whether the batch must be written before another event. */
bool incstack__record_is_full(const struct incstack__record *record)
{
	return record->log.size - record->log.used < INCSTACK__TRACEFILE_WIDE_BYTES ||
	       record->tree || (record->check && !incstack__record_check_room(record)) ||
	       incstack__record_is_past(record);
}

/* Writes a batch. Modules are checked before each batch. If the caller holds the recording's lock,
 * they were checked before it took the lock. */
static void flush(struct incstack__record *record)
{
	if (record == incstack__record_local.mine)
		incstack__record_modules();
	incstack__record_flush(record);
}

/* Walks the callers that samples have left open, because a kill would leave them unknown. On a deep
 * stack that takes long, so it is done only before the first batch. */
void incstack__record_complete(struct incstack__record *record)
{
	enum { DEEP_BYTES = 64 << 10 };
	struct incstack__protection before;

	if ((incstack__record_depth(record) >= DEEP_BYTES && record->retrieved > 0) ||
	    !incstack__stack_has_gaps(record->stack))
		return;
	incstack__record_protect(&before);
	incstack__stack_complete(record->stack);
	incstack__record_unprotect(&before);
}

/* How long events wait before they are written. A batch takes some 20 ns for each frame of the
 * stack, so events of a deep stack wait longer. */
static int64_t patience_ns(const struct incstack__record *record)
{
	return FLUSH_AFTER_NS + (int64_t)incstack__record_depth(record) * 16;
}

/* Whether the open callers were last walked long enough ago. Walking them at each call would make
 * the recording a tenth slower. Without the time-stamp counter the time is unknown. */
static bool is_completion_due(struct incstack__record *record, uint64_t stamp)
{
	if (!has_counter() && stamp - record->completed < COMPLETE_AFTER_TICKS)
		return false;
	record->completed = stamp;
	return true;
}

/* Reads a coarse clock, and writes the batch if it is 100 ms old, or older on a deep stack. Also
 * adds a time event, from which the stamps of the following events are counted. */
static __attribute__((noinline)) void look_at_clock(struct incstack__record *record)
{
	const uint64_t stamp = has_counter() ? stamp_of_counter() : __rdtsc();
	struct timespec now;

	incstack__clock(CLOCK_MONOTONIC_COARSE, &now);
	if ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec - record->written_ns >=
	    patience_ns(record))
		flush(record);
	else if (is_completion_due(record, stamp))
		incstack__record_complete(record);
	incstack__tracefile_put_time(&record->log, stamp);
}

/* Sets how far the log may be filled by events on the fast path, unless the recording changes. */
static void allow_quick(struct incstack__record *record, uint32_t changes)
{
	/* Signal handlers that interrupt an event also need room for their events. */
	const size_t most = record->log.size - 8 * INCSTACK__TRACEFILE_WIDE_BYTES;

	if (record->check || incstack__recording.interval > 1 ||
	    incstack__slot_is_shared(record->slot) || incstack__record_is_unloading() ||
	    has_counter() || record->retrieved + record->traces == 0)
		return;
	record->changes = changes;
	record->alone = is_alone();
	record->quick = record->look < most ? record->look : most;
}

/* Whether the stack has room for the slow work, which takes some 5 KiB. If that work faulted in the
 * middle, a handler that jumps out would leave signals blocked and locks held. */
static bool stack_suffices(const struct incstack__record *record)
{
	enum { LEAST_BYTES = 6 << 10 };
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return here < record->low || here >= record->high || here - record->low >= LEAST_BYTES;
}

/* Whether a time event, which a look at the clock adds, would take the room of the next event. */
static bool is_full_with_time(const struct incstack__record *record)
{
	return record->log.used >= record->look &&
	       record->log.size - record->log.used < 2 * INCSTACK__TRACEFILE_WIDE_BYTES;
}

static bool try_to_make_room(struct incstack__record *record)
{
	/* acquire: pairs with the releases of all additions; see struct incstack__recording. */
	const uint32_t changes =
		atomic_load_explicit(&incstack__recording.changes, memory_order_acquire);

	if (!stack_suffices(record)) {
		incstack__record_note(INCSTACK__NOTE_SMALL_STACK);
		return false;
	}
	if (incstack__record_is_full(record) || is_full_with_time(record))
		flush(record);
	if (record->tree)
		return false;
	if (incstack__record_must_follow_mode(record))
		incstack__record_follow_mode(record);
	if (record->walker)
		incstack__record_walk_end(record);
	if (record->log.used >= record->look && !record->walker) {
		look_at_clock(record);
		if (record->tree) /* a batch was due, and there is no memory for it */
			return false;
		record->look = record->log.used + LOOK_AFTER_BYTES;
		allow_quick(record, changes);
	}
	return record->log.size - record->log.used >= INCSTACK__TRACEFILE_WIDE_BYTES &&
	       !incstack__record_is_past(record);
}

/* Code may be unloaded between the end of a batch and the last check. Then the new batch must
 * also end. */
bool incstack__record_make_room(struct incstack__record *record)
{
	enum { TRIES = 4 };

	for (int i = 0; i < TRIES; i++) {
		if (try_to_make_room(record))
			return true;
		if (!incstack__record_is_past(record))
			return false;
	}
	return false;
}
