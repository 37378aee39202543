/* SPDX-License-Identifier: MIT
 *
 * The threads that sample, with a JVM that can only start threads, and a technique that notes the times
 * it was called for: each time of the grid is taken once or missed, by however many threads.
 */
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"
#include "clock.h"
#include "jvm_with_threads.h"
#include "say.h"
#include "sampler.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

enum { NOTED_MOST = 100000, NUMBER = 7 };

static atomic_int dumps, overs;

void agent_say(const char *format, ...)
{
	(void)format;
}

/* ---- the technique ---- */

static uint64_t noted[NOTED_MOST];
static atomic_uint count;

static void note(struct agent_technique *technique, JNIEnv *jni, struct agent_tick *tick)
{
	const unsigned i = atomic_fetch_add(&count, 1);

	(void)technique, (void)jni;
	ck_assert_uint_lt(i, NOTED_MOST);
	ck_assert_uint_le(tick->due, agent_now());
	noted[i] = tick->due;
	tick->wanted = tick->taken = 1;
}

static const struct agent_technique_kind turns = {.takes_turns = true, .tick = note};
static const struct agent_technique_kind alone = {.tick = note};

static void dump(void *context, JNIEnv *jni, bool next)
{
	(void)context, (void)jni, (void)next;
	atomic_fetch_add(&dumps, 1);
}

static void over(void *context, JNIEnv *jni, uint64_t number)
{
	(void)context, (void)jni;
	ck_assert_uint_eq(number, NUMBER);
	atomic_fetch_add(&overs, 1);
}

/* ---- a sampler ---- */

static struct agent_shared shared;
static struct agent_sampler sampler;
static struct agent_technique technique;

static void set_up(void)
{
	agent_sampler_init(&sampler);
}

static void close_sampler(void)
{
	agent_sampler_close(&sampler, &thread_jni);
}

/* A loop may open it again. */
static void open_sampler(const struct agent_technique_kind *kind, uint64_t interval_ns)
{
	close_sampler();
	memset(&shared, 0, sizeof(shared));
	memset(&jvm, 0, sizeof(jvm));
	atomic_store(&count, 0);
	atomic_store(&dumps, 0);
	atomic_store(&overs, 0);
	jvm.may_start = AGENT_TICKER_THREADS_MOST;
	technique.kind = kind;
	shared.jvmti = &thread_jvmti;
	shared.options.interval_ns = interval_ns;
	shared.start_ns = agent_now();
}

static const char *try_start(void)
{
	const struct agent_sampler_calls calls = {.dump = dump, .over = over, .number = NUMBER};

	return agent_sampler_start(&sampler, &thread_jni, &shared, &technique, &calls);
}

static void start(void)
{
	ck_assert_ptr_null(try_start());
}

static void stop(void)
{
	ck_assert(agent_sampler_stop(&sampler, agent_now() + 10 * AGENT_NS_PER_S));
}

static void pause_for(uint64_t ns)
{
	const struct timespec time = {.tv_sec = (time_t)(ns / 1000 / MS),
				      .tv_nsec = (long)(ns % (1000 * MS))};

	nanosleep(&time, NULL);
}

static void wait_for_ticks(unsigned wanted)
{
	while (atomic_load(&count) < wanted)
		pause_for(100 * US);
}

static void wait_for_end(void)
{
	pthread_mutex_lock(&sampler.lock);
	while (!sampler.ended || sampler.followers)
		pthread_cond_wait(&sampler.changed, &sampler.lock);
	pthread_mutex_unlock(&sampler.lock);
}

static int by_time(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Each time from the first to the last that was taken is a time of the grid, and was taken once or was
 * missed. */
static void check_grid(void)
{
	const uint64_t interval = shared.options.interval_ns;
	const unsigned taken = atomic_load(&count);
	uint64_t last;

	ck_assert_uint_gt(taken, 0);
	qsort(noted, taken, sizeof(*noted), by_time);
	for (unsigned i = 0; i < taken; i++) {
		ck_assert_uint_eq((noted[i] - shared.start_ns) % interval, 0);
		ck_assert(!i || noted[i] > noted[i - 1]);
	}
	last = (noted[taken - 1] - shared.start_ns) / interval;
	ck_assert_uint_eq(sampler.ticks.taken, taken);
	/* If one thread takes all times, those after the last may be missed already. */
	ck_assert_uint_ge(taken + sampler.ticks.missed, last);
	ck_assert(sampler.turns == 1 || taken + sampler.ticks.missed == last);
	ck_assert_uint_eq(sampler.ticks.wanted, taken + sampler.ticks.missed);
	ck_assert_uint_eq(shared.collector.lost[AGENT_LOSS_LATE], sampler.ticks.missed);
}

START_TEST(threads_take_turns)
{
	open_sampler(&turns, 100 * US);
	start();
	wait_for_ticks(1000);
	stop();
	ck_assert_uint_eq(sampler.turns, AGENT_TICKER_THREADS_MOST);
	ck_assert_uint_eq(jvm.removed,
			  AGENT_TICKER_THREADS_MOST); /* none is a thread to be sampled */
	ck_assert_int_eq(overs, 0);
	check_grid();
	for (unsigned i = 0; i < AGENT_TICKER_THREADS_MOST; i++) {
		const uint64_t number =
			(sampler.takers[i].turn - shared.start_ns) / shared.options.interval_ns;

		ck_assert_uint_eq(number % AGENT_TICKER_THREADS_MOST,
				  (i + 1) % AGENT_TICKER_THREADS_MOST);
	}
}
END_TEST

/* Such a technique must not be called by two threads. */
START_TEST(one_thread_takes_all_times)
{
	open_sampler(&alone, 100 * US);
	start();
	wait_for_ticks(300);
	stop();
	ck_assert_uint_eq(sampler.turns, 1);
	ck_assert_uint_eq(jvm.started, 1);
	check_grid();
}
END_TEST

START_TEST(long_intervals_need_one_thread)
{
	open_sampler(&turns, MS);
	start();
	wait_for_ticks(20);
	stop();
	ck_assert_uint_eq(jvm.started, 1);
	check_grid();
}
END_TEST

/* Such a request takes long. */
START_TEST(waiting_threads_are_sampled_by_one_thread)
{
	open_sampler(&turns, 100 * US);
	shared.options.waiting = true;
	start();
	wait_for_ticks(20);
	stop();
	ck_assert_uint_eq(jvm.started, 1);
}
END_TEST

START_TEST(fewer_threads_can_be_started)
{
	for (unsigned may = 1; may < AGENT_TICKER_THREADS_MOST; may++) {
		open_sampler(&turns, 100 * US);
		jvm.may_start = may;
		start();
		wait_for_ticks(100);
		stop();
		ck_assert_uint_eq(sampler.turns, may);
		check_grid();
	}
}
END_TEST

START_TEST(no_thread_can_be_started)
{
	open_sampler(&turns, 100 * US);
	jvm.may_start = 0;
	ck_assert_ptr_nonnull(try_start());
	ck_assert_ptr_null(sampler.takers[0].thread);
}
END_TEST

/* A stop may come while threads are being started. */
START_TEST(it_stops_at_any_moment)
{
	for (unsigned i = 0; i < 100; i++) {
		open_sampler(&turns, 100 * US);
		start();
		pause_for(20 * US * i);
		stop();
		ck_assert_uint_eq(sampler.followers, 0);
	}
}
END_TEST

/* The leader does it between two ticks, and all go on. */
START_TEST(the_leader_does_what_is_asked)
{
	open_sampler(&turns, 100 * US);
	start();
	for (int i = 1; i <= 20; i++) {
		const unsigned before = atomic_load(&count);

		agent_sampler_ask(&sampler, AGENT_ASKED_DUMP);
		ck_assert_int_eq(dumps, i);
		wait_for_ticks(before + 2 * AGENT_TICKER_THREADS_MOST);
	}
	stop();
	check_grid();
}
END_TEST

START_TEST(it_ends_when_the_duration_is_over)
{
	open_sampler(&turns, 100 * US);
	shared.options.duration_ns = 30 * MS;
	start();
	wait_for_end();
	while (!atomic_load(&overs))
		pause_for(100 * US);
	stop();
	ck_assert_int_eq(overs, 1);
	check_grid();
	ck_assert_uint_le(noted[atomic_load(&count) - 1], shared.start_ns + 30 * MS);
}
END_TEST

/* Only the newest of the times that have passed is taken. */
START_TEST(times_that_have_passed_are_missed)
{
	open_sampler(&turns, 100 * US);
	shared.start_ns -= 10 * MS;
	start();
	wait_for_ticks(10);
	stop();
	check_grid();
	ck_assert_uint_ge(noted[0], shared.start_ns + 10 * MS);
	ck_assert_uint_ge(sampler.ticks.missed, 99);
}
END_TEST

START_TEST(no_time_after_the_end_is_taken)
{
	open_sampler(&turns, 100 * US);
	shared.start_ns -= 10 * MS;
	shared.options.duration_ns = 5 * MS;
	start();
	wait_for_end();
	stop();
	check_grid();
	ck_assert_uint_eq(atomic_load(&count), 1);
	ck_assert_uint_eq(noted[0], shared.start_ns + 5 * MS);
}
END_TEST

/* Between the two calls, other threads go on. */
START_TEST(each_tick_belongs_to_one_part)
{
	struct agent_ticks part, rest;

	open_sampler(&turns, 100 * US);
	start();
	wait_for_ticks(100);
	agent_sampler_count(&sampler, &part);
	wait_for_ticks((unsigned)part.taken + 100);
	agent_sampler_next_part(&sampler, &part);
	stop();
	agent_sampler_count(&sampler, &rest);
	ck_assert_uint_eq(part.taken + rest.taken, atomic_load(&count));
	ck_assert_uint_eq(part.missed + rest.missed, shared.collector.lost[AGENT_LOSS_LATE]);
	ck_assert_uint_eq(part.wanted + rest.wanted,
			  atomic_load(&count) + part.missed + rest.missed);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("sampler");
	Suite *suite = suite_create("agent sampler");

	tcase_add_checked_fixture(tests, set_up, close_sampler);
	tcase_add_test(tests, threads_take_turns);
	tcase_add_test(tests, one_thread_takes_all_times);
	tcase_add_test(tests, long_intervals_need_one_thread);
	tcase_add_test(tests, waiting_threads_are_sampled_by_one_thread);
	tcase_add_test(tests, fewer_threads_can_be_started);
	tcase_add_test(tests, no_thread_can_be_started);
	tcase_add_test(tests, it_stops_at_any_moment);
	tcase_add_test(tests, the_leader_does_what_is_asked);
	tcase_add_test(tests, it_ends_when_the_duration_is_over);
	tcase_add_test(tests, times_that_have_passed_are_missed);
	tcase_add_test(tests, no_time_after_the_end_is_taken);
	tcase_add_test(tests, each_tick_belongs_to_one_part);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
