/* SPDX-License-Identifier: MIT
 *
 * The meter, with a clock of the test's own: single rules, and random programs whose calls and times are known.
 */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/instrument.h>

#include "run_suite.h"

enum { METHODS = 8, CALLED = 4, RANDOM_PROGRAMS = 60 };

static uint64_t now; /* a tick is a ns */
static struct incstack_meter *meter;
static struct incstack_meter_thread *thread;
static struct incstack_meter_method *methods[METHODS];

static uint64_t read_clock(void *context)
{
	(void)context;
	return now;
}

static void create(uint32_t flags, uint32_t contexts, uint32_t depth)
{
	const struct incstack_meter_options options = {.size = sizeof(options),
						       .clock = read_clock,
						       .ticks_per_second = 1e9,
						       .contexts = contexts,
						       .depth = depth,
						       .flags = flags};

	now = 1000;
	ck_assert_int_eq(incstack_meter_create(&options, &meter), 0);
	for (uint64_t i = 0; i < METHODS; i++)
		ck_assert_int_eq(incstack_meter_method_create(meter, i, &methods[i]), 0);
	ck_assert_int_eq(incstack_meter_method_set_root(methods[0], 1), 0);
	ck_assert_int_eq(incstack_meter_thread_create(meter, 7, &thread), 0);
}

static void teardown(void)
{
	incstack_meter_destroy(meter);
	meter = NULL;
}

static int enter(int method, uintptr_t frame)
{
	return incstack_meter_enter(thread, methods[method], frame);
}

static void leave(int method, uintptr_t frame)
{
	incstack_meter_exit(thread, methods[method], frame);
}

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

static struct incstack_meter_stats stats_now(void)
{
	struct incstack_meter_stats stats = {.size = sizeof(stats)};

	ck_assert_int_eq(incstack_meter_stats(meter, &stats), 0);
	return stats;
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
	ck_assert_int_eq(incstack_meter_snapshot_create(meter, INCSTACK_METER_PER_THREAD, &snapshot), 0);
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
	const struct incstack_meter_options options = {
		.size = sizeof(options), .clock = read_and_interrupt, .ticks_per_second = 1e9};

	ck_assert_int_eq(incstack_meter_create(&options, &meter), 0);
	for (uint64_t i = 0; i < METHODS; i++)
		ck_assert_int_eq(incstack_meter_method_create(meter, i, &methods[i]), 0);
	incstack_meter_method_set_root(methods[0], 1);
	ck_assert_int_eq(incstack_meter_thread_create(meter, 7, &thread), 0);
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
	const struct incstack_meter_options options = {
		.size = sizeof(options), .clock = read_slow_clock, .ticks_per_second = 1e9};

	ck_assert_int_eq(incstack_meter_create(&options, &meter), 0);
	for (uint64_t i = 0; i < METHODS; i++)
		ck_assert_int_eq(incstack_meter_method_create(meter, i, &methods[i]), 0);
	incstack_meter_method_set_root(methods[0], 1);
	incstack_meter_method_set_mode(methods[2], INCSTACK_METER_COUNTED);
	ck_assert_int_eq(incstack_meter_thread_create(meter, 7, &thread), 0);
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
	const struct incstack_meter_options options = {
		.size = sizeof(options), .clock = read_slow_clock, .ticks_per_second = 1e9};
	uint32_t changed;

	ck_assert_int_eq(incstack_meter_create(&options, &meter), 0);
	for (uint64_t i = 0; i < METHODS; i++)
		ck_assert_int_eq(incstack_meter_method_create(meter, i, &methods[i]), 0);
	incstack_meter_method_set_root(methods[0], 1);
	ck_assert_int_eq(incstack_meter_thread_create(meter, 7, &thread), 0);
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

/* ---- random programs ------------------------------------------------------------------------- */

/* The record that a program makes of itself. */
struct recorded {
	int parent, method;
	uint64_t timed, counted, own;
};

static struct {
	struct recorded contexts[4096];
	int count;
	int path[64], frames[64], depth; /* contexts of the open calls */
	bool is_timed[64];
	uint32_t mode[METHODS];
	uint64_t events, seed;
	bool unseen, descends;
} program;

static uint32_t below(uint32_t n)
{
	program.seed = program.seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((program.seed >> 33) % n);
}

static int context_of(int parent, int method)
{
	for (int i = 0; i < program.count; i++)
		if (program.contexts[i].parent == parent && program.contexts[i].method == method)
			return i;
	ck_assert_int_lt(program.count, 4096);
	program.contexts[program.count] = (struct recorded){.parent = parent, .method = method};
	return program.count++;
}

/* The clock runs for the innermost timed call. */
static void spend(uint64_t ticks)
{
	int at = program.depth - 1;

	now += ticks;
	while (at >= 0 && !program.is_timed[at])
		at--;
	if (at >= 0)
		program.contexts[program.path[at]].own += ticks;
}

static void call(int method, int frame)
{
	const int parent = program.depth > 0 ? program.path[program.depth - 1] : -1;
	int context;

	if (program.mode[method] != INCSTACK_METER_OFF && (program.depth > 0 || method == 0)) {
		context = context_of(parent, method);
		program.path[program.depth] = context;
		program.frames[program.depth] = frame;
		program.is_timed[program.depth] = program.mode[method] == INCSTACK_METER_TIMED;
		if (program.is_timed[program.depth])
			program.contexts[context].timed++;
		else
			program.contexts[context].counted++;
		program.depth++;
	}
	enter(method, (uintptr_t)frame);
	program.events++;
}

static void run(int depth, int frame, int *abandon);

/* A callee, which may be left by a jump that nobody reports. */
static void run_callee(int depth, int frame, int *abandon)
{
	const int open = program.depth, method = (int)below(CALLED);

	call(method, frame);
	run(depth + 1, frame, abandon);
	if (*abandon > 0) {
		--*abandon;
		return;
	}
	if (program.depth > open)
		program.depth = open;
	leave(method, (uintptr_t)frame);
}

static void run(int depth, int frame, int *abandon)
{
	const int open = program.depth;

	for (uint32_t i = below(depth < 4 ? 5 : 2) + 1; i > 0; i--) {
		spend(below(100));
		if (depth < 8 && below(3))
			run_callee(depth, frame - 16 - (int)below(3) * 16, abandon);
		if (*abandon > 0)
			return;
		/* Here the jump has arrived. Without descending frames the meter learns it at the exit. */
		if (program.depth > open && program.descends) {
			incstack_meter_unwinding_to(thread, (uintptr_t)frame);
			program.depth = open;
		}
		if (program.depth > open)
			return;
	}
	if (program.unseen && depth > 2 && below(20) == 0)
		*abandon = 1 + (int)below(2);
}

static void compare(void)
{
	struct incstack_meter_snapshot *snapshot;
	struct incstack_meter_context context = {.size = sizeof(context)};
	int known[4096];
	uint32_t i;

	ck_assert_int_eq(incstack_meter_snapshot_create(meter, 0, &snapshot), 0);
	for (i = 0; incstack_meter_snapshot_context(snapshot, i, &context) == 0; i++) {
		const int parent = context.parent == INCSTACK_METER_NONE ? -1 : known[context.parent];
		const struct recorded *right;

		ck_assert_uint_lt(i, 4096);
		known[i] = context_of(parent, (int)context.function);
		right = &program.contexts[known[i]];
		ck_assert_uint_eq(context.timed, right->timed);
		ck_assert_uint_eq(context.calls, right->timed + right->counted);
		ck_assert_uint_eq(context.own_ns, right->own);
	}
	ck_assert_int_eq((int)i, program.count);
	incstack_meter_snapshot_destroy(snapshot);
}

START_TEST(random_programs)
{
	memset(&program, 0, sizeof(program));
	program.seed = (uint64_t)_i * 7919 + 3;
	program.descends = _i % 2;
	program.unseen = program.descends && _i % 3 == 0;
	create(program.descends ? INCSTACK_METER_FRAMES_DESCEND : 0, 0, 0);
	for (int turn = 0; turn < 12; turn++) {
		int abandon = 0;

		call(0, 1000000);
		run(0, 1000000, &abandon);
		program.depth = 0;
		leave(0, 1000000);
		spend(1000);
		for (int i = 1; i < METHODS && below(2); i++) {
			const int changed = (int)below(CALLED - 1) + 1;

			program.mode[changed] = below(3);
			incstack_meter_method_set_mode(methods[changed], program.mode[changed]);
		}
		compare();
	}
	ck_assert_uint_gt(program.events, 200);
	ck_assert_uint_eq(stats_now().unmatched, 0);
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
	TCase *random = tcase_create("random");

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
	tcase_add_checked_fixture(random, NULL, teardown);
	tcase_add_loop_test(random, random_programs, 0, RANDOM_PROGRAMS);
	suite_add_tcase(suite, random);
	return suite;
}

int main(void)
{
	return run_suite(make_suite());
}
