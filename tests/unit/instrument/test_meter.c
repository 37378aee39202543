/* SPDX-License-Identifier: MIT
 *
 * The meter, with a clock of the test's own: single rules.
 */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <incstack/instrument.h>

#include "metered.h"
#include "run_suite.h"

/* A path of methods from a root, as "0 1 1". */
static struct incstack_meter_context find(const char *path)
{
	struct incstack_meter_snapshot *snapshot;
	struct incstack_meter_context context = {.size = sizeof(context)}, found = {.calls = 0};
	char paths[64][64];

	ck_assert_int_eq(incstack_meter_snapshot_create(meter, 0, &snapshot), 0);
	for (uint32_t i = 0; incstack_meter_snapshot_context(snapshot, i, &context) == 0; i++) {
		ck_assert_uint_lt(i, 64);
		if (context.parent == INCSTACK_METER_NONE)
			snprintf(paths[i], 64, "%d", (int)context.function);
		else
			snprintf(paths[i], 64, "%.50s %d", paths[context.parent],
				 (int)context.function);
		if (strcmp(paths[i], path) == 0)
			found = context;
	}
	incstack_meter_snapshot_destroy(snapshot);
	return found;
}

START_TEST(calls_and_times)
{
	create(0, 0, 0);
	ck_assert_int_eq(enter(1, 100), 0); /* outside of the subgraph */
	leave(1, 100);
	ck_assert_int_eq(enter(0, 100), 1); /* runs for the first time */
	now += 5;
	ck_assert_int_eq(enter(1, 90), 1);
	now += 20;
	leave(1, 90);
	ck_assert_int_eq(enter(1, 90), 0);
	now += 30;
	ck_assert_int_eq(enter(0, 80), 0); /* the root again, as a callee */
	now += 1;
	leave(0, 80);
	leave(1, 90);
	now += 7;
	leave(0, 100);
	now += 1000;
	ck_assert_uint_eq(find("0").calls, 1);
	ck_assert_uint_eq(find("0").own_ns, 12);
	ck_assert_uint_eq(find("0").total_ns, 63);
	ck_assert_uint_eq(find("0 1").calls, 2);
	ck_assert_uint_eq(find("0 1").own_ns, 50);
	ck_assert_uint_eq(find("0 1").total_ns, 51);
	ck_assert_uint_eq(find("0 1 0").own_ns, 1);
	ck_assert_uint_eq(find("1").calls, 0);
	ck_assert_uint_eq(stats_now().calls, 4);
	ck_assert_uint_eq(stats_now().unseen + stats_now().unmatched, 0);
}
END_TEST

START_TEST(pauses_and_waits)
{
	create(0, 0, 0);
	enter(0, 100);
	now += 5;
	incstack_meter_thread_stop(thread, INCSTACK_METER_WAIT);
	now += 100;
	incstack_meter_thread_stop(thread, INCSTACK_METER_PAUSE);
	now += 1000;
	enter(1, 90); /* a class that is being loaded runs code: it is counted */
	now += 1000;
	leave(1, 90);
	incstack_meter_thread_go(thread, INCSTACK_METER_PAUSE);
	now += 100;
	incstack_meter_thread_go(thread, INCSTACK_METER_WAIT);
	incstack_meter_thread_go(thread, INCSTACK_METER_WAIT); /* changes nothing */
	now += 6;
	leave(0, 100);
	ck_assert_uint_eq(find("0").own_ns, 11);
	ck_assert_uint_eq(find("0").waiting_ns, 200);
	ck_assert_uint_eq(find("0 1").calls, 1);
	ck_assert_uint_eq(find("0 1").own_ns, 0);
	ck_assert_uint_eq(stats_now().paused_ns, 2000);
}
END_TEST

START_TEST(exits_that_nobody_saw)
{
	create(0, 0, 0);
	enter(0, 100);
	enter(1, 90);
	enter(2, 80);
	now += 10;
	leave(1, 90); /* 2 was left by a longjmp */
	now += 3;
	leave(3, 50); /* began before it was instrumented */
	leave(0, 100);
	leave(0, 100);
	ck_assert_uint_eq(find("0 1 2").own_ns, 10);
	ck_assert_uint_eq(find("0").own_ns, 3);
	ck_assert_uint_eq(stats_now().unseen, 1);
	ck_assert_uint_eq(stats_now().unmatched, 1); /* outside nothing is counted */
}
END_TEST

START_TEST(descending_frames)
{
	create(INCSTACK_METER_FRAMES_DESCEND, 0, 0);
	enter(0, 100);
	enter(1, 90);
	enter(2, 80);
	now += 10;
	enter(3, 95); /* the frames at 90 and 80 are gone */
	now += 2;
	enter(1, 95); /* inlined into it */
	leave(1, 95);
	ck_assert_uint_eq(stats_now().unseen, 2);
	enter(2, 85);
	enter(2, 75);
	incstack_meter_unwinding_to(thread, 95);
	now += 4;
	leave(3, 95);
	leave(0, 100);
	ck_assert_uint_eq(find("0 1 2").own_ns, 10);
	ck_assert_uint_eq(find("0 3").own_ns, 6);
	ck_assert_uint_eq(find("0 3 1").calls, 1);
	ck_assert_uint_eq(find("0 3 2 2").calls, 1);
	ck_assert_uint_eq(stats_now().unseen, 2);
	ck_assert_uint_eq(stats_now().unmatched, 0);
	enter(0, 0); /* not allowed here */
	ck_assert_uint_eq(stats_now().calls, 7);
}
END_TEST

START_TEST(counted_methods_and_samples)
{
	create(0, 0, 0);
	incstack_meter_method_set_mode(methods[1], INCSTACK_METER_COUNTED);
	ck_assert_int_eq(incstack_meter_method_mode(methods[1]), INCSTACK_METER_COUNTED);
	incstack_meter_method_set_mode(methods[3], INCSTACK_METER_OFF);
	enter(0, 100);
	for (int i = 0; i < 3; i++) {
		enter(1, 90);
		now += 10;
		incstack_meter_sample(thread, 10);
		enter(2, 80);
		now += 4;
		incstack_meter_sample(thread, 1);
		enter(3, 70);
		enter(1, 60);
		leave(1, 60);
		leave(3, 70);
		leave(2, 80);
		leave(1, 90);
	}
	now += 7;
	leave(0, 100);
	incstack_meter_sample(thread, 1000); /* outside */
	ck_assert_uint_eq(find("0 1").calls, 3);
	ck_assert_uint_eq(find("0 1").timed, 0);
	ck_assert_uint_eq(find("0 1").own_ns, 30);
	ck_assert_uint_eq(find("0 1").is_counted, 1);
	ck_assert_uint_eq(find("0 1 2").own_ns, 12);
	ck_assert_uint_eq(find("0 1 2").sampled_ns, 3);
	ck_assert_uint_eq(find("0 1 2 1").calls, 3); /* method 3 is off */
	ck_assert_uint_eq(find("0").own_ns, 7);
	ck_assert_uint_eq(find("0").total_ns, 49);
	ck_assert_uint_eq(stats_now().unmatched, 0);
}
END_TEST

START_TEST(limits)
{
	create(0, 3, 4);
	enter(0, 100);
	for (int turn = 0; turn < 2; turn++) {
		enter(1, 90);
		enter(2, 80);
		enter(3, 70); /* no room for its context */
		enter(1, 60); /* too deep */
		enter(1, 50);
		now += 9;
		leave(1, 50);
		leave(1, 60);
		leave(3, 70);
		leave(2, 80);
		leave(1, 90);
	}
	leave(0, 100);
	ck_assert_uint_eq(find("0 1 2").own_ns, 18);
	ck_assert_uint_eq(find("0 1 2").calls, 2);
	ck_assert_uint_eq(stats_now().no_room, 2);
	ck_assert_uint_eq(stats_now().too_deep, 4);
	ck_assert_uint_eq(stats_now().unmatched + stats_now().unseen, 0);
	/* Without frames, the innermost call ends. */
	for (int i = 0; i < 10; i++)
		enter(0, 0);
	for (int i = 0; i < 10; i++) {
		now += 1;
		leave(0, 0);
	}
	ck_assert_uint_eq(stats_now().unmatched + stats_now().unseen, 0);
	ck_assert_uint_eq(find("0").own_ns, 10); /* no room for contexts of the recursion */
}
END_TEST

START_TEST(threads_that_end)
{
	struct incstack_meter_snapshot *snapshot;
	struct incstack_meter_context context = {.size = sizeof(context)};
	struct incstack_meter_thread *other;
	uint64_t by_thread[10] = {0};

	create(0, 0, 0);
	ck_assert_int_eq(incstack_meter_thread_create(meter, 8, &other), 0);
	incstack_meter_enter(other, methods[0], 1);
	incstack_meter_enter(other, methods[1], 2);
	incstack_meter_thread_end(other);
	enter(0, 100);
	leave(0, 100);
	ck_assert_int_eq(
		incstack_meter_snapshot_create(meter, INCSTACK_METER_PER_THREAD, &snapshot), 0);
	for (uint32_t i = 0; incstack_meter_snapshot_context(snapshot, i, &context) == 0; i++)
		by_thread[context.thread] += context.calls;
	incstack_meter_snapshot_destroy(snapshot);
	ck_assert_uint_eq(by_thread[0], 2);
	ck_assert_uint_eq(by_thread[7], 1);
	ck_assert_uint_eq(find("0").calls, 2);
	ck_assert_uint_eq(stats_now().threads, 1);
	ck_assert_uint_eq(stats_now().unseen, 2);
	incstack_meter_thread_end(NULL);
}
END_TEST

/* ---- an event that interrupts an event ------------------------------------------------------- */

static bool interrupts;

static uint64_t read_and_interrupt(void *context)
{
	(void)context;
	if (interrupts && thread) {
		interrupts = false;
		incstack_meter_enter(thread, methods[2], 5);
		incstack_meter_exit(thread, methods[2], 5);
		interrupts = true;
	}
	return now;
}

START_TEST(events_within_events)
{
	create_with(read_and_interrupt, 0, 0, 0);
	interrupts = true;
	enter(0, 100);
	leave(0, 100);
	interrupts = false;
	ck_assert_uint_eq(stats_now().calls, 1);
	ck_assert_uint_eq(stats_now().nested, 4);
}
END_TEST

/* ---- prices ---------------------------------------------------------------------------------- */

/* Each reading of this clock takes 10 ticks: 4 before the value is taken, 6 after. */
static uint64_t read_slow_clock(void *context)
{
	uint64_t value;

	(void)context;
	now += 4;
	value = now;
	now += 6;
	return value;
}

START_TEST(prices_are_taken_out)
{
	create_with(read_slow_clock, 0, 0, 0);
	incstack_meter_method_set_mode(methods[2], INCSTACK_METER_COUNTED);
	ck_assert(fabs(stats_now().inner_ns - 10) < 0.1);
	ck_assert(fabs(stats_now().outer_ns - 10) < 0.1);
	enter(0, 100);
	for (int i = 0; i < 1000; i++) {
		enter(1, 90);
		now += 16;
		enter(2, 80);
		leave(2, 80);
		leave(1, 90);
		now += 3;
	}
	leave(0, 100);
	/* Calibrated, a call takes 16 ticks; measured, 26. */
	ck_assert_uint_ge(find("0 1").own_ns, 15900);
	ck_assert_uint_le(find("0 1").own_ns, 16100);
	ck_assert_uint_ge(find("0 1").measured_ns, 25900);
	ck_assert_uint_ge(find("0").own_ns, 2900);
	ck_assert_uint_le(find("0").own_ns, 3100);
}
END_TEST

START_TEST(methods_that_are_too_short)
{
	uint32_t changed;

	create_with(read_slow_clock, 0, 0, 0);
	enter(0, 100);
	for (int i = 0; i < 2000; i++) {
		enter(1, 90);
		now += 30; /* below twice the price, which is 20 */
		leave(1, 90);
		enter(2, 90);
		now += 50;
		leave(2, 90);
	}
	enter(3, 90);
	leave(3, 90); /* once: not judged */
	ck_assert_int_eq(incstack_meter_adapt(meter, 0, &changed), 0);
	ck_assert_uint_eq(changed, 1);
	ck_assert_int_eq(incstack_meter_method_mode(methods[1]), INCSTACK_METER_COUNTED);
	ck_assert_int_eq(incstack_meter_method_mode(methods[2]), INCSTACK_METER_TIMED);
	ck_assert_int_eq(incstack_meter_method_mode(methods[3]), INCSTACK_METER_TIMED);
	/* Nothing happened since. */
	ck_assert_int_eq(incstack_meter_adapt(meter, 0.01, &changed), 0);
	ck_assert_uint_eq(changed, 0);
	for (int i = 0; i < 2000; i++) {
		enter(2, 90);
		now += 50;
		leave(2, 90);
	}
	ck_assert_int_eq(incstack_meter_adapt(meter, 0.01, &changed), 0);
	ck_assert_int_eq(incstack_meter_method_mode(methods[2]), INCSTACK_METER_COUNTED);
	leave(0, 100);
	ck_assert_int_eq(incstack_meter_method_mode(methods[0]), INCSTACK_METER_TIMED);
}
END_TEST

START_TEST(bad_arguments)
{
	struct incstack_meter_options options = {.size = 1};
	struct incstack_meter_snapshot *snapshot;
	struct incstack_meter_context context = {.size = 1};
	struct incstack_meter_stats stats = {.size = 1};
	struct incstack_meter *made;

	create(0, 0, 0);
	ck_assert_int_eq(incstack_meter_create(&options, &made), INCSTACK_EINVAL);
	options.size = sizeof(options);
	options.clock = read_clock;
	ck_assert_int_eq(incstack_meter_create(&options, &made), INCSTACK_EINVAL);
	options.clock = NULL;
	options.flags = 1u << 9;
	ck_assert_int_eq(incstack_meter_create(&options, &made), INCSTACK_EINVAL);
	options.flags = 0;
	options.contexts = UINT32_MAX;
	ck_assert_int_eq(incstack_meter_create(&options, &made), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_create(NULL, &made), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_method_create(meter, 1, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_method_set_root(NULL, 1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_method_set_root(methods[0], 2), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_method_set_mode(methods[0], 3), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_method_mode(NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_thread_create(NULL, 1, &thread), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_snapshot_create(meter, 2, &snapshot), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_snapshot_create(meter, 0, &snapshot), 0);
	ck_assert_int_eq(incstack_meter_snapshot_context(snapshot, 0, &context), INCSTACK_EINVAL);
	incstack_meter_snapshot_destroy(snapshot);
	incstack_meter_snapshot_destroy(NULL);
	ck_assert_int_eq(incstack_meter_stats(meter, &stats), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_adapt(meter, -1, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_adapt(meter, (double)NAN, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_calibrate(NULL, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_meter_enter(NULL, methods[0], 1), 0);
	ck_assert_int_eq(incstack_meter_enter(thread, NULL, 1), 0);
	incstack_meter_exit(NULL, NULL, 1);
	incstack_meter_thread_stop(thread, 9);
	incstack_meter_sample(NULL, 1);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("meter");
	TCase *rules = tcase_create("rules");

	tcase_add_checked_fixture(rules, NULL, teardown);
	tcase_add_test(rules, calls_and_times);
	tcase_add_test(rules, pauses_and_waits);
	tcase_add_test(rules, exits_that_nobody_saw);
	tcase_add_test(rules, descending_frames);
	tcase_add_test(rules, counted_methods_and_samples);
	tcase_add_test(rules, limits);
	tcase_add_test(rules, threads_that_end);
	tcase_add_test(rules, events_within_events);
	tcase_add_test(rules, prices_are_taken_out);
	tcase_add_test(rules, methods_that_are_too_short);
	tcase_add_test(rules, bad_arguments);
	suite_add_tcase(suite, rules);
	return suite;
}

int main(void)
{
	return run_suite(make_suite());
}
