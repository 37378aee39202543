/* SPDX-License-Identifier: MIT
 *
 * Tests the recorder's events without the rest of it. What cannot be recorded is counted once.
 * An event takes the fast path only as long as nothing changes for the whole recording. Samples
 * are refused, and batches fail, when a test says so.
 */
#include <signal.h>

#include "recorder/events/enter.c"
#include "recorder/events/events.c"
#include "recorder/heap/heap.c"
#include "recorder/events/room.c"

#include "run_suite.h"

#include "record_alone.h"

/* ---- refusals --------------------------------------------------------------------------- */

/* The core has no memory: it gets some, and the sample is taken again. */
START_TEST(sample_is_taken_again)
{
	struct incstack__record *record = begin_test();

	sample_errors[0] = INCSTACK_EROOM;
	put();
	ck_assert_uint_eq(samples, 2);
	ck_assert_uint_eq(reserves, 1);
	ck_assert_uint_eq(record->traces, 1);
	ck_assert_uint_eq(record->live.refused, 0);
	ck_assert_uint_eq(record->slot->samples_started, 1);
	ck_assert_uint_eq(notes, 0);
}
END_TEST

/* The event is recorded without a trace, and the next one names its own. */
static void check_refused(struct incstack__record *record, unsigned taken, unsigned noted)
{
	const size_t before = record->log.used;

	put();
	ck_assert_uint_eq(samples, taken);
	ck_assert_uint_eq(record->traces, 0);
	ck_assert_uint_eq(record->live.refused, 1);
	ck_assert_uint_eq(record->live.dropped, 0);
	ck_assert_uint_eq(record->slot->samples_started, 1);
	ck_assert_uint_eq(notes, noted);
	ck_assert_uint_gt(record->log.used, before);
	ck_assert_uint_eq(record->log.trace, 0);
	put();
	put();
	ck_assert_uint_eq(record->traces, 2);
	ck_assert_uint_eq(record->log.trace, 2);
	ck_assert_uint_eq(record->live.refused, 1);
	ck_assert_uint_eq(record->slot->samples_started, 3);
}

START_TEST(no_memory_is_counted)
{
	struct incstack__record *record = begin_test();

	sample_errors[0] = INCSTACK_EROOM;
	reserve_error = INCSTACK_ENOMEM;
	check_refused(record, 1, 1);
}
END_TEST

START_TEST(no_memory_twice_is_counted_once)
{
	struct incstack__record *record = begin_test();

	sample_errors[0] = sample_errors[1] = INCSTACK_EROOM;
	check_refused(record, 2, 1);
}
END_TEST

/* It would be refused again, so it is not taken again. */
START_TEST(other_refusal_is_counted)
{
	struct incstack__record *record = begin_test();

	sample_errors[0] = INCSTACK_ERANGE;
	check_refused(record, 1, 0);
	ck_assert_uint_eq(reserves, 0);
}
END_TEST

/* The event of a signal handler that has interrupted the core. The note about memory would be false. */
START_TEST(refusal_in_a_return_is_counted)
{
	struct incstack__record *record = begin_test();

	sample_errors[0] = INCSTACK_EBUSY;
	check_refused(record, 1, 0);
	ck_assert_uint_eq(reserves, 0);
	ck_assert_uint_eq(record->slot->in_return, 1);
}
END_TEST

/* ---- losses ----------------------------------------------------------------------------- */

/* The core is busy until the handler has returned, so the batch cannot be written. The allocation counts
 * as one whose trace is lost, and both events as missing. */
START_TEST(events_in_a_return_without_room)
{
	struct incstack__record *record = begin_test();
	static const char block[16];

	put();
	record->log.used = record->log.size;
	record->quick = 0;
	batch_fails = core_is_busy = true;
	put();
	incstack__heap_on_free(block);
	core_is_busy = false;
	ck_assert_uint_eq(record->live.dropped, 0);
	ck_assert_uint_eq(record->live.refused, 1);
	ck_assert_uint_eq(record->slot->samples_started, 2);
	ck_assert_uint_eq(record->slot->in_return, 1);
	ck_assert_uint_eq(record->slot->interrupting, 2);
	put();
	ck_assert_uint_eq(record->live.dropped, 1);
	ck_assert_uint_eq(record->slot->interrupting, 2);
}
END_TEST

/* While a batch waits for memory, no event is added to it, and each is counted. */
START_TEST(events_without_a_batch)
{
	struct incstack__record *record = begin_test();
	static const char block[16];

	for (int i = 0; i < 10; i++)
		put();
	record->log.used = record->log.size; /* it is full */
	record->quick = 0;
	batch_fails = true;
	for (unsigned i = 1; i <= 5; i++) {
		put();
		incstack__heap_on_free(block);
		ck_assert_uint_eq(record->live.dropped, 2 * i);
		ck_assert_uint_eq(flushes, 2 * i);
	}
	ck_assert_uint_eq(record->traces, 10);
	ck_assert_uint_eq(record->live.refused, 0);
	ck_assert_uint_eq(record->slot->samples_started, 10);
	batch_fails = false;
	put();
	incstack__heap_on_free(block);
	ck_assert_uint_eq(record->live.dropped, 10);
	ck_assert_uint_eq(record->traces, 1);
	ck_assert_uint_eq(record->retrieved, 10);
	ck_assert_uint_eq(record->slot->samples_started, 11);
}
END_TEST

/* The same if the clock demands the batch and there is room for more events: these would belong to
 * a batch whose traces were taken over already. */
START_TEST(batch_that_is_due)
{
	struct incstack__record *record = begin_test();

	put();
	const size_t used = record->log.used;
	record->look = record->quick = 0;
	record->written_ns = INT64_MIN / 2;
	batch_fails = true;
	for (unsigned i = 1; i <= 3; i++) {
		put();
		ck_assert_uint_eq(flushes, i);
		ck_assert_uint_eq(record->live.dropped, i);
		ck_assert_uint_eq(record->quick, 0);
	}
	ck_assert_uint_eq(record->slot->samples_started, 1);
	ck_assert_uint_le(record->log.used, used + 8); /* the time */
	batch_fails = false;
	put();
	ck_assert_uint_eq(flushes, 4);
	ck_assert_uint_eq(record->live.dropped, 3);
	ck_assert_uint_eq(record->traces, 1);
}
END_TEST

/* An event that finds no room although it was to take the fast path. */
START_TEST(full_log)
{
	struct incstack__record *record = begin_test();
	static const char block[16];

	put();
	record->quick = SIZE_MAX;
	record->changes = incstack__recording.changes;
	record->log.used = record->log.size;
	put();
	ck_assert_uint_eq(record->live.dropped, 1);
	incstack__heap_on_free(block);
	ck_assert_uint_eq(record->live.dropped, 2);
	ck_assert_uint_eq(flushes, 0);
}
END_TEST

/* In the middle of another event, whose frame is still there. */
START_TEST(events_inside_an_event)
{
	struct incstack__record *record = begin_test();
	static const char block[16];

	put();
	const size_t used = record->log.used;
	incstack__record_local.state = record->high - 16;
	put();
	incstack__heap_on_free(block);
	ck_assert_uint_eq(record->slot->interrupting, 2);
	incstack__record_local.state = INCSTACK__INSIDE; /* it is the recorder's own */
	put();
	incstack__heap_on_free(block);
	ck_assert_uint_eq(record->slot->interrupting, 2);
	ck_assert_uint_eq(record->log.used, used);
	ck_assert_uint_eq(record->slot->samples_started, 1);
	incstack__record_local.state = 0;
}
END_TEST

/* ---- quick events ----------------------------------------------------------------------- */

/* Takes events until one takes the fast path. Then the next event checks nothing of the
 * recording. */
static void make_quick(struct incstack__record *record)
{
	for (int i = 0; record->changes != incstack__recording.changes ||
			record->quick <= record->log.used + INCSTACK__TRACEFILE_WIDE_BYTES;
	     i++) {
		ck_assert_int_lt(i, 200);
		put();
	}
	rooms = 0;
	put();
	ck_assert_uint_eq(rooms, 0);
}

/* A quick event gets more memory, and its sample begins at the same frame. */
START_TEST(quick_event_with_little_room)
{
	struct incstack__record *record = begin_test();

	make_quick(record);
	for (unsigned refused = 0; refused < 2; refused++) {
		const struct incstack_top before = newest;
		const uint64_t traces = record->traces;
		const uint64_t started = record->slot->samples_started;

		little_room = true;
		samples = reserves = 0;
		sample_errors[0] = refused ? INCSTACK_EROOM : 0;
		put();
		ck_assert(!little_room);
		ck_assert_uint_eq(samples, 1 + refused);
		ck_assert_uint_eq(reserves, 1 + refused);
		ck_assert_uint_eq(record->traces, traces + 1);
		ck_assert_uint_eq(record->slot->samples_started, started + 1);
		ck_assert_uint_eq(newest.pc, before.pc);
		ck_assert_uint_eq(newest.fp, before.fp);
		ck_assert_uint_eq(record->batch_room, (1 + refused) * AHEAD_BYTES);
	}
	ck_assert_uint_eq(newest.fp, 7);
	ck_assert_uint_eq(record->live.refused, 0);
	ck_assert_uint_eq(rooms, 0);
}
END_TEST

START_TEST(change_ends_quick_events)
{
	struct incstack__record *record = begin_test();
	static const char block[16];

	make_quick(record);
	incstack__heap_on_free(block);
	ck_assert_uint_eq(rooms, 0);
	incstack__recording.changes++;
	put();
	ck_assert_uint_eq(rooms, 1);
	incstack__heap_on_free(block);
	ck_assert_uint_eq(rooms, 2);
}
END_TEST

/* The open events were recorded with the earlier code, so they are written first. */
START_TEST(new_epoch)
{
	struct incstack__record *record = begin_test();

	make_quick(record);
	incstack__recording.epoch++;
	incstack__recording.changes++;
	put();
	ck_assert_uint_eq(flushes, 1);
	ck_assert_uint_eq(record->epoch, 1);
	ck_assert_uint_eq(record->traces, 1);
}
END_TEST

/* Code is unloaded after the batch was written: the new one is written, too. If that goes on, the event
 * is dropped and counted. */
START_TEST(new_epochs_meanwhile)
{
	struct incstack__record *record = begin_test();

	make_quick(record);
	incstack__recording.epoch++;
	incstack__recording.changes++;
	unloads = _i ? 1000 : 2;
	put();
	unloads = 0;
	ck_assert_uint_eq(flushes, _i ? 4 : 3);
	ck_assert_uint_eq(record->traces, !_i);
	ck_assert_uint_eq(record->live.dropped, (unsigned)_i);
}
END_TEST

/* A second thread: from its first event on, stamps come from the clock. */
START_TEST(stamps_of_the_clock)
{
	struct incstack__record *record = begin_test();

	make_quick(record);
	ck_assert(record->alone);
	const uint64_t stamp = record->log.stamp;
	put();
	ck_assert_uint_eq(record->log.stamp, stamp + 1);
	incstack__recording.shared = 1;
	incstack__recording.changes++;
	const uint64_t now = __rdtsc();
	put();
	ck_assert_uint_ge(record->log.stamp, now);
	make_quick(record);
	ck_assert(!record->alone);
}
END_TEST

/* If the program has forbidden the clock, each event has a later number than all before it. */
START_TEST(stamps_of_the_counter)
{
	struct incstack__record *record = begin_test();
	static const char block[16];

	incstack__recording.shared = _i % 2;
	incstack__recording.counter = 1000;
	for (uint64_t last = 1000; last < 1020; last = record->log.stamp) {
		put();
		ck_assert_uint_gt(record->log.stamp, last);
		ck_assert_uint_le(record->log.stamp, incstack__recording.counter);
		last = record->log.stamp;
		incstack__heap_on_free(block);
		ck_assert_uint_gt(record->log.stamp, last);
		ck_assert_uint_le(record->log.stamp, incstack__recording.counter);
	}
	ck_assert_uint_le(incstack__recording.counter, 1040);
}
END_TEST

START_TEST(recording_that_is_off)
{
	struct incstack__record *record = begin_test();

	make_quick(record);
	const size_t used = record->log.used;
	incstack__recording.on = 0;
	incstack__recording.changes++;
	put();
	ck_assert_uint_eq(record->log.used, used);
	ck_assert_uint_eq(record->slot->interrupting, 0);
	ck_assert_uint_eq(record->live.dropped, 0);
}
END_TEST

/* ---- a slot for several threads --------------------------------------------------------- */

/* Another thread, which counts between any two instructions of this one. */
static uint64_t counted_beside;

static void count_beside(int number)
{
	(void)number;
	slots[INCSTACK__TRACEFILE_SLOTS - 1].samples_started++;
	counted_beside++;
}

#define SET_FLAGS(instruction) \
	__asm__ volatile("pushfq\n\t" instruction ", (%%rsp)\n\tpopfq" ::: "memory", "cc")

START_TEST(shared_slot)
{
	struct incstack__record *record = begin_test();

	record->slot = &slots[INCSTACK__TRACEFILE_SLOTS - 1];
	ck_assert(signal(SIGTRAP, count_beside) != SIG_ERR);
	SET_FLAGS("orq $0x100");
	put();
	SET_FLAGS("andq $~0x100");
	ck_assert_uint_gt(counted_beside, 50);
	ck_assert_uint_eq(record->slot->samples_started, counted_beside + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("events of the recorder");
	TCase *events = tcase_create("events");

	tcase_add_test(events, sample_is_taken_again);
	tcase_add_test(events, no_memory_is_counted);
	tcase_add_test(events, no_memory_twice_is_counted_once);
	tcase_add_test(events, other_refusal_is_counted);
	tcase_add_test(events, refusal_in_a_return_is_counted);
	tcase_add_test(events, events_in_a_return_without_room);
	tcase_add_test(events, events_without_a_batch);
	tcase_add_test(events, batch_that_is_due);
	tcase_add_test(events, full_log);
	tcase_add_test(events, events_inside_an_event);
	tcase_add_test(events, quick_event_with_little_room);
	tcase_add_test(events, change_ends_quick_events);
	tcase_add_test(events, new_epoch);
	tcase_add_loop_test(events, new_epochs_meanwhile, 0, 2);
	tcase_add_test(events, stamps_of_the_clock);
	tcase_add_loop_test(events, stamps_of_the_counter, 0, 2);
	tcase_add_test(events, recording_that_is_off);
	tcase_add_test(events, shared_slot);
	suite_add_tcase(suite, events);
	return run_suite(suite);
}
