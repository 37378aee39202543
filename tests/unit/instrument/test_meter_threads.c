/* SPDX-License-Identifier: MIT
 *
 * Threads that report calls while others take snapshots, change modes and adapt: no call is lost.
 */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>

#include <incstack/instrument.h>

#include "run_suite.h"

enum { THREADS = 4, METHODS = 6, TURNS = 20000, DEPTH = 5, ROUNDS = 4 };

static struct incstack_meter *meter;
static struct incstack_meter_method *methods[METHODS];
static atomic_int running;

static void call(struct incstack_meter_thread *thread, int turn, int depth)
{
	struct incstack_meter_method *method = methods[depth == 0 ? 0 : (turn + depth) % METHODS];

	incstack_meter_enter(thread, method, (uintptr_t)(100 - depth));
	if (depth < DEPTH)
		call(thread, turn, depth + 1);
	incstack_meter_sample(thread, 1);
	incstack_meter_exit(thread, method, (uintptr_t)(100 - depth));
}

static void *run(void *argument)
{
	struct incstack_meter_thread *thread;

	(void)argument;
	if (incstack_meter_thread_create(meter, 1, &thread) == 0) {
		for (int turn = 0; turn < TURNS; turn++)
			call(thread, turn, 0);
		incstack_meter_thread_end(thread);
	}
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* Returns the calls of all contexts. */
static uint64_t take_snapshot(uint64_t *sampled)
{
	struct incstack_meter_context context = {.size = sizeof(context)};
	struct incstack_meter_snapshot *snapshot;
	uint64_t calls = 0;

	*sampled = 0;
	ck_assert_int_eq(incstack_meter_snapshot_create(meter, 0, &snapshot), 0);
	for (uint32_t i = 0; incstack_meter_snapshot_context(snapshot, i, &context) == 0; i++) {
		ck_assert(context.parent == INCSTACK_METER_NONE || context.parent < i);
		ck_assert_uint_ge(context.calls, context.timed);
		calls += context.calls;
		*sampled += context.sampled_ns;
	}
	incstack_meter_snapshot_destroy(snapshot);
	return calls;
}

START_TEST(no_call_is_lost)
{
	const struct incstack_meter_options options = {.size = sizeof(options)};
	struct incstack_meter_stats stats = {.size = sizeof(stats)};
	const uint64_t right = (uint64_t)THREADS * TURNS * (DEPTH + 1);
	uint64_t before = 0, sampled, turn = 0;
	pthread_t threads[THREADS];

	ck_assert_int_eq(incstack_meter_create(&options, &meter), 0);
	for (uint64_t i = 0; i < METHODS; i++)
		ck_assert_int_eq(incstack_meter_method_create(meter, i, &methods[i]), 0);
	incstack_meter_method_set_root(methods[0], 1);
	atomic_store(&running, THREADS);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run, NULL), 0);
	while (atomic_load(&running) > 0) {
		const uint64_t calls = take_snapshot(&sampled);

		ck_assert_uint_ge(calls, before);
		before = calls;
		incstack_meter_method_set_mode(methods[turn % METHODS], turn % 2);
		turn++;
		ck_assert_int_eq(incstack_meter_adapt(meter, 0, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(take_snapshot(&sampled), right);
	ck_assert_uint_eq(sampled, right);
	ck_assert_int_eq(incstack_meter_stats(meter, &stats), 0);
	ck_assert_uint_eq(stats.calls, right);
	ck_assert_uint_eq(stats.unseen + stats.unmatched + stats.lost + stats.no_room, 0);
	incstack_meter_destroy(meter);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("meters of threads");
	TCase *threads = tcase_create("threads");

	tcase_add_loop_test(threads, no_call_is_lost, 0, ROUNDS);
	suite_add_tcase(suite, threads);
	return run_suite(suite);
}
