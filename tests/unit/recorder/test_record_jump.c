/* SPDX-License-Identifier: MIT
 *
 * Tests the recorder where a program jumps, switches to a context, unloads code or ends a
 * thread, and where the shared record must be used; without the rest of the recorder.
 */
#include "recorder/events/enter.c"
#include "recorder/events/events.c"
#include "recorder/heap/heap.c"
#include "recorder/events/room.c"

#include "run_suite.h"

#include "record_alone.h"

static struct incstack__record for_all, context_record;
static uint64_t shared_events[LOG_BYTES / 8];

/* A recording with the shared record, whose stack may be any. */
static struct incstack__record *begin_shared(void)
{
	struct incstack__record *record = begin_test();

	memset(&for_all, 0, sizeof(for_all));
	incstack__tracefile_log_init(&for_all.log, shared_events, LOG_BYTES);
	for_all.slot = &slots[0];
	for_all.high = UINTPTR_MAX;
	for_all.written_ns = INT64_MAX;
	for_all.look = LOG_BYTES;
	for_all.stack = (struct incstack_stack *)&for_all;
	record->stack = (struct incstack_stack *)record;
	incstack__recording.shared_record = &for_all;
	own_error = mode_error = 0;
	owned = unwindings = full_modes = skips = locked = lifts = left_by_jump = entered = 0;
	contexts[0] = contexts[1] = made = NULL;
	return record;
}

/* A jump to frames of the thread's own stack pops its frames; any other does not. */
START_TEST(jumps_on_the_own_stack)
{
	struct incstack__record *record = begin_shared();

	record->low = HERE - LOG_BYTES;
	incstack__record_jump(HERE);
	ck_assert_uint_eq(unwindings, 1);
	ck_assert_ptr_eq(unwound_stack, record->stack);
	incstack__record_jump(record->low);
	incstack__record_jump(record->high - 1);
	ck_assert_uint_eq(unwindings, 3);
	incstack__record_jump(record->low - 1);
	incstack__record_jump(record->high);
	ck_assert_uint_eq(unwindings, 3);
	ck_assert_uint_eq(lifts, 0);
	/* A jump out of a handler, and out of the event that the handler has interrupted. */
	incstack__record_local.state = HERE + 64;
	incstack__record_jump(HERE + 128);
	ck_assert_uint_eq(unwindings, 5);
	ck_assert_uint_eq(incstack__record_local.state, 0);
	/* A jump to the frame of the event: the event goes on. */
	const uintptr_t entered_at = HERE + 128;
	incstack__record_local.state = entered_at;
	incstack__record_jump(entered_at);
	ck_assert_uint_eq(incstack__record_local.state, entered_at);
	ck_assert_uint_eq(unwindings, 5);
	incstack__record_jump(entered_at + 1);
	ck_assert_uint_eq(incstack__record_local.state, 0);
	unwindings = 5;
	incstack__recording.on = 0;
	incstack__record_jump(HERE);
	ck_assert_uint_eq(unwindings, 5);
	ck_assert_uint_eq(incstack__record_local.state, 0);
}
END_TEST

/* Within a context its frames are popped; out of it, or into another, it is left. */
START_TEST(jumps_and_contexts)
{
	struct incstack__record *record = begin_shared();

	context_record.low = HERE - LOG_BYTES;
	context_record.high = HERE + LOG_BYTES;
	context_record.stack = (struct incstack_stack *)&context_record;
	record->low = record->high = 0; /* the thread runs on the context's stack */
	contexts[0] = &context_record;
	incstack__recording.contexts = &context_record;
	incstack__record_jump(HERE);
	ck_assert_uint_eq(unwindings, 1);
	ck_assert_ptr_eq(unwound_stack, context_record.stack);
	ck_assert_uint_eq(lifts, 0);
	incstack__record_jump(context_record.high);
	ck_assert_uint_eq(unwindings, 1);
	ck_assert_uint_eq(lifts, 1);
	for_all.low = context_record.high;
	contexts[1] = &for_all;
	incstack__record_jump(context_record.high);
	ck_assert_uint_eq(unwindings, 2);
	ck_assert_ptr_eq(unwound_stack, for_all.stack);
	ck_assert_uint_eq(lifts, 2);
	ck_assert_uint_eq(left_by_jump, 2);
	incstack__record_switch(&for_all);
	ck_assert_uint_eq(lifts, 3);
	ck_assert_uint_eq(left_by_jump, 2);
	ck_assert_uint_eq(entered, 1);
	ck_assert_uint_eq(locked, 0);
}
END_TEST

/* No event begins inside another one. */
START_TEST(inside_an_event)
{
	struct incstack__record *record = begin_shared();

	incstack__record_local.state = INCSTACK__INSIDE;
	incstack__record_jump(HERE);
	incstack__record_switch(&for_all);
	incstack__record_thread_end();
	incstack__record_unload(INCSTACK__UNLOAD_BEGINS, NULL);
	incstack__record_thread();
	ck_assert_uint_eq(unwindings + lifts + entered + full_modes + flushes, 0);
	ck_assert_uint_eq(incstack__record_local.state, INCSTACK__INSIDE);
	incstack__record_local.state = 0;
	incstack__record_unload(INCSTACK__UNLOAD_BEGINS, NULL);
	ck_assert_uint_eq(flushes, 1);
	incstack__record_unload(INCSTACK__UNLOAD_ENDED, NULL);
	incstack__record_unload(INCSTACK__UNLOAD_ANNOUNCED, record);
	ck_assert_uint_eq(flushes, 1);
	ck_assert_uint_eq(incstack__record_local.state, 0);
	incstack__recording.on = 0;
	incstack__record_unload(INCSTACK__UNLOAD_BEGINS, NULL);
	ck_assert_uint_eq(flushes, 1);
}
END_TEST

/* A jump has left an event, whose frame is gone. The event ends, and what was sampled in it counts.
 * An event that is still in progress does not end. */
START_TEST(left_by_a_jump)
{
	struct incstack__record *record = begin_shared();
	static struct incstack__record_check check;

	record->low = HERE - LOG_BYTES;
	record->check = &check;
	record->retrieved = 5;
	record->traces = 1;
	samples = 5 + 3;
	incstack__record_local.state = HERE + 64; /* further out: in progress */
	incstack__record_unload(INCSTACK__UNLOAD_BEGINS, NULL);
	ck_assert_uint_eq(flushes, 0);
	ck_assert_uint_eq(unwindings, 0);
	incstack__record_local.state = record->high; /* on another stack, which was left */
	ck_assert_int_eq(incstack__event_end_left(HERE), 1);
	ck_assert_uint_eq(unwindings, 1);
	ck_assert_uint_eq(record->traces, 3);
	ck_assert_uint_eq(skips, 2);
	ck_assert_uint_eq(incstack__record_local.state, 0);
	incstack__record_local.state = record->low; /* below every frame that runs */
	ck_assert_int_eq(incstack__event_end_left(record->low - 1), 0);
	ck_assert_int_eq(incstack__event_end_left(record->high), 0);
	record->check = NULL;
	samples++;
	incstack__record_unload(INCSTACK__UNLOAD_BEGINS, NULL);
	ck_assert_uint_eq(flushes, 1);
	ck_assert_uint_eq(skips, 2);
	ck_assert_uint_eq(incstack__record_local.state, 0);
	/* That was the thread's first event, in which its record was to be made. */
	incstack__record_local.mine = NULL;
	incstack__record_local.state = HERE;
	ck_assert_int_eq(incstack__event_end_left(HERE), 0);
	ck_assert_int_eq(incstack__event_end_left(HERE - 8), 0);
	ck_assert_int_eq(incstack__event_end_left(HERE + 8), 1);
	ck_assert_uint_eq(incstack__record_local.state, 0);
	ck_assert_int_eq(incstack__event_end_left(HERE), 0);
	incstack__record_local.state = HERE;
	incstack__event_count_interrupting(); /* there is no record in use */
	ck_assert_uint_eq(record->slot->interrupting, 0);
	incstack__record_local.mine = record;
	incstack__recording.on = 0;
	incstack__event_count_interrupting();
	ck_assert_uint_eq(record->slot->interrupting, 0);
	incstack__recording.on = 1;
	incstack__event_count_interrupting();
	ck_assert_uint_eq(record->slot->interrupting, 1);
	incstack__record_local.state = 0;
}
END_TEST

/* Barriers of a thread that ends are lifted, except where there are none. */
START_TEST(end_of_a_thread)
{
	struct incstack__record *record = begin_shared();

	incstack__record_thread_end();
	ck_assert_uint_eq(full_modes, 1);
	ck_assert_int_eq(record->no_barriers, 1);
	mode_error = INCSTACK_EBUSY;
	incstack__record_thread_end();
	ck_assert_int_eq(record->no_barriers, 0);
	incstack__recording.mode = INCSTACK_MODE_FULL;
	incstack__record_thread_end();
	ck_assert_uint_eq(full_modes, 2);
	incstack__recording.mode = INCSTACK_MODE_PATCH;
	incstack__record_local.mine = NULL; /* after its last destructor: the shared record */
	incstack__record_thread_end();
	ck_assert_uint_eq(full_modes, 2);
	ck_assert_uint_eq(locked, 0);
	ck_assert_uint_eq(incstack__record_local.state, 0);
}
END_TEST

/* The shared record, unless it cannot be used: then nothing is recorded. */
START_TEST(shared_record)
{
	struct incstack__record *record = begin_shared();

	record->low = record->high = 0;
	put(); /* its caller is on no known stack */
	ck_assert_uint_gt(for_all.log.used, 0);
	ck_assert_uint_eq(record->log.used, 0);
	const size_t used = for_all.log.used;
	own_error = INCSTACK_EBUSY;
	put();
	ck_assert_uint_eq(for_all.log.used, used);
	incstack__record_local.mine = NULL;
	put();
	incstack__record_jump(HERE);
	incstack__record_switch(&for_all);
	incstack__record_thread_end();
	incstack__heap_on_free(&for_all);
	ck_assert_uint_eq(for_all.log.used, used);
	ck_assert_uint_eq(entered, 0);
	ck_assert_uint_eq(locked, 0);
	ck_assert_uint_eq(incstack__record_local.state, 0);
	own_error = 0;
	put();
	ck_assert_uint_gt(for_all.log.used, used);
	for_all.stack = NULL; /* in a child in which it could not be made */
	put();
	ck_assert_uint_eq(locked, 0);
}
END_TEST

/* A deallocation on another stack whose record is full: the batch of the shared record is written by a
 * thread that owns its stack. */
START_TEST(deallocation_elsewhere)
{
	struct incstack__record *record = begin_shared();

	record->low = record->high = 0;
	record->log.used = record->log.size;
	for_all.log.used = for_all.log.size;
	flushes = 0;
	incstack__heap_on_free(&for_all);
	ck_assert_uint_eq(flushes, 1);
	ck_assert_uint_eq(owned, 1);
	ck_assert_uint_gt(for_all.log.used, 0);
	ck_assert_uint_eq(for_all.live.dropped, 0);
	ck_assert_uint_eq(record->log.used, record->log.size);
	ck_assert_uint_eq(locked, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("jumps in the recorder");
	TCase *tests = tcase_create("jumps");

	tcase_add_test(tests, jumps_on_the_own_stack);
	tcase_add_test(tests, jumps_and_contexts);
	tcase_add_test(tests, inside_an_event);
	tcase_add_test(tests, left_by_a_jump);
	tcase_add_test(tests, end_of_a_thread);
	tcase_add_test(tests, shared_record);
	tcase_add_test(tests, deallocation_elsewhere);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
