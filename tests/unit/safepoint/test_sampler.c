/* SPDX-License-Identifier: MIT
 *
 * Tests of the sampler: its counts add up in every technique, a thread that never polls does not
 * block it, and destroy leaves nothing behind. The tests
 * wait for counts, never for a time.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <time.h>

#include <incstack/sampler.h>

#include "held_locks.h"
#include "run_suite.h"
#include "safepoint/safepoint_step.h"

#define MUTATORS 4
#define INTERVAL 100000

static struct incstack_safepoint *safepoint;
static pthread_t tids[MUTATORS];
static atomic_bool leave_loop, mute;
static atomic_uint attached, samples, behalf, retrieved, inside;

static void *mutator(void *waits)
{
	struct incstack_thread *self;
	if (incstack_safepoint_attach(safepoint, &self))
		return NULL;
	if (waits)
		incstack_thread_wait_begin(self);
	atomic_fetch_add(&attached, 1);
	while (!atomic_load(&leave_loop)) {
		if (!waits && !atomic_load(&mute))
			incstack_thread_poll(self);
		sched_yield();
	}
	if (waits)
		incstack_thread_wait_end(self);
	incstack_thread_detach(self);
	return NULL;
}

static void begin(unsigned waiting)
{
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	for (unsigned i = 0; i < MUTATORS; i++)
		pthread_create(&tids[i], NULL, mutator, i < waiting ? safepoint : NULL);
	while (atomic_load(&attached) < MUTATORS)
		sched_yield();
}

static void end(void)
{
	atomic_store(&leave_loop, true);
	for (unsigned i = 0; i < MUTATORS; i++)
		pthread_join(tids[i], NULL);
	incstack_safepoint_destroy(safepoint);
}

static void operation(const struct incstack_ticket *ticket, void *argument)
{
	(void)argument;
	atomic_fetch_add(&inside, 1);
	atomic_fetch_add(&samples, 1);
	atomic_fetch_add(&behalf, ticket->on_behalf);
	atomic_fetch_sub(&inside, 1);
}

static void retrieve(struct incstack_sampler *sampler, void *argument)
{
	(void)sampler, (void)argument;
	atomic_fetch_add(&retrieved, 1);
}

static uint64_t stop_timeout_ns = 1000000;
static struct incstack_sampler *make(uint32_t n, uint32_t flags)
{
	struct incstack_sampler *sampler;
	struct incstack_sampler_options options = {
		.size = sizeof(options),
		.safepoint = safepoint,
		.interval_ns = INTERVAL,
		.retrieve_ns = UINT64_C(3) * INTERVAL,
		.stop_timeout_ns = stop_timeout_ns,
		.n = n,
		.flags = flags,
		.operation = operation,
		.retrieve = retrieve,
	};
	ck_assert_int_eq(incstack_sampler_create(&options, &sampler), 0);
	return sampler;
}

static struct incstack_sampler_stats stats_of(struct incstack_sampler *sampler)
{
	struct incstack_sampler_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_sampler_stats(sampler, &stats), 0);
	return stats;
}

static void await_ticks(struct incstack_sampler *sampler, uint64_t ticks)
{
	while (stats_of(sampler).ticks < ticks || atomic_load(&retrieved) == 0)
		sched_yield();
}

/* Returns the final counters. */
static struct incstack_sampler_stats stop(struct incstack_sampler *sampler)
{
	struct incstack_sampler_stats stats = {.size = sizeof(stats)};
	uint64_t latencies = 0;
	incstack_sampler_destroy(sampler, &stats);
	for (int i = 0; i < INCSTACK_SAMPLER_BUCKETS; i++)
		latencies += stats.latency[i];
	ck_assert_uint_eq(stats.ticks, stats.requested + stats.missed);
	ck_assert_uint_eq(stats.wanted, stats.taken + stats.lost);
	ck_assert_uint_eq(stats.taken, latencies);
	ck_assert_uint_eq(stats.taken, atomic_load(&samples));
	ck_assert_uint_eq(stats.retrieves, atomic_load(&retrieved));
	ck_assert_uint_eq(atomic_load(&inside), 0);
	return stats;
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* No sample came later than the time that has passed. */
static void check_latencies(const struct incstack_sampler_stats *stats, uint64_t passed)
{
	for (int i = 0; i < INCSTACK_SAMPLER_BUCKETS; i++)
		ck_assert(stats->latency[i] == 0 || UINT64_C(1) << i <= passed);
}

static void sample_and_check(uint32_t n, uint32_t flags)
{
	const uint64_t start = now();
	struct incstack_sampler *sampler = make(n, flags);
	await_ticks(sampler, 20);
	while (atomic_load(&samples) == 0) /* the machine may be busy */
		sched_yield();
	const struct incstack_sampler_stats stats = stop(sampler);
	check_latencies(&stats, now() - start);
}

START_TEST(partial)
{
	begin(0);
	sample_and_check(2, 0);
	ck_assert_uint_gt(atomic_load(&samples), 0);
	ck_assert_uint_eq(atomic_load(&behalf), 0);
	end();
}
END_TEST

START_TEST(partial_with_waiting_threads)
{
	begin(2);
	sample_and_check(4, INCSTACK_SAMPLER_WAITING | INCSTACK_SAMPLER_REAL_TIME);
	ck_assert_uint_gt(atomic_load(&behalf), 0);
	end();
}
END_TEST

START_TEST(full)
{
	begin(1);
	sample_and_check(3, INCSTACK_SAMPLER_FULL);
	ck_assert_uint_eq(atomic_load(&behalf), atomic_load(&samples));
	ck_assert_uint_eq(atomic_load(&samples) % 3, 0); /* all three that run, each time */
	atomic_store(&samples, 0);
	atomic_store(&retrieved, 0);
	sample_and_check(100, INCSTACK_SAMPLER_FULL | INCSTACK_SAMPLER_WAITING);
	ck_assert_uint_eq(atomic_load(&samples) % MUTATORS, 0);
	end();
}
END_TEST

static void nobody_polls(uint32_t flags)
{
	atomic_store(&mute, true);
	begin(0);
	struct incstack_sampler *sampler = make(2, flags);
	await_ticks(sampler, 60); /* more than there are requests */
	ck_assert_uint_eq(stop(sampler).taken, 0);
	end();
}

START_TEST(nobody_polls_partial)
{
	nobody_polls(0);
}
END_TEST

START_TEST(nobody_polls_full)
{
	nobody_polls(INCSTACK_SAMPLER_FULL);
}
END_TEST

/* There are more ticks than places for requests: the places of ended ones are used again. */
START_TEST(requests_are_used_again)
{
	struct incstack_sampler *sampler;
	begin(_i ? 1 : 0);
	stop_timeout_ns = UINT64_C(3600) * 1000000000;
	sampler = make(1, _i ? INCSTACK_SAMPLER_FULL : 0);
	while (stats_of(sampler).requested < 2 * INCSTACK_WORD_REQUESTS)
		sched_yield();
	(void)stop(sampler);
	end();
}
END_TEST

static atomic_bool hold_retrieve;

static void long_retrieve(struct incstack_sampler *sampler, void *argument)
{
	(void)sampler, (void)argument;
	atomic_fetch_add(&retrieved, 1);
	while (atomic_load(&hold_retrieve))
		sched_yield();
}

static void pass_time(uint64_t ns)
{
	uint64_t end = now() + ns;
	while (now() < end)
		sched_yield();
}

/* Nothing but destroy ends the sleep of a sampler whose next tick is far away. */
START_TEST(a_long_sleep_ends_at_destroy)
{
	struct incstack_sampler *sampler;
	struct incstack_sampler_options options = {.size = sizeof(options),
						   .interval_ns =
							   _i ? UINT64_MAX : UINT64_C(1) << 62,
						   .n = 1,
						   .operation = operation};
	begin(0);
	options.safepoint = safepoint;
	ck_assert_int_eq(incstack_sampler_create(&options, &sampler), 0);
	pass_time(100 * INTERVAL); /* most likely it sleeps by now */
	ck_assert_uint_eq(stop(sampler).ticks, 0);
	end();
}
END_TEST

/* Ticks on the grid of `interval` that lie between calls made then and now. */
static void check_ticks(uint64_t ticks, const uint64_t first[2], const uint64_t last[2],
			uint64_t interval)
{
	ck_assert_uint_ge(ticks, (last[0] - first[1]) / interval);
	ck_assert_uint_le(ticks, (last[1] - first[0]) / interval);
}

/* A sampler that has been inside a retrieve for thirty ticks; start: when it was started. */
static struct incstack_sampler *start_and_hold(uint64_t start[2])
{
	struct incstack_sampler_options options = {.size = sizeof(options),
						   .safepoint = safepoint,
						   .interval_ns = INTERVAL,
						   .retrieve_ns = UINT64_C(3) * INTERVAL,
						   .n = 1,
						   .operation = operation,
						   .retrieve = long_retrieve};
	struct incstack_sampler *sampler;
	hold_retrieve = true;
	start[0] = now();
	ck_assert_int_eq(incstack_sampler_create(&options, &sampler), 0);
	start[1] = now();
	while (atomic_load(&retrieved) == 0)
		sched_yield();
	pass_time(30 * INTERVAL);
	return sampler;
}

static void *let_retrieve_end(void *argument)
{
	pass_time(30 * INTERVAL);
	hold_retrieve = false;
	return argument;
}

START_TEST(destroy_counts_what_was_due)
{
	struct incstack_sampler *sampler;
	uint64_t start[2], end_at[2];
	pthread_t helper;
	begin(0);
	sampler = start_and_hold(start);
	end_at[0] = now();
	pthread_create(&helper, NULL, let_retrieve_end, NULL);
	const uint64_t ticks = stop(sampler).ticks;
	end_at[1] = now();
	pthread_join(helper, NULL);
	check_ticks(ticks, start, end_at, INTERVAL);
	end();
}
END_TEST

/* The grid continues from the current time: the ticks in between get no requests. */
START_TEST(ticks_after_a_retrieve_are_skipped)
{
	struct incstack_sampler *sampler;
	uint64_t start[2], missed;
	begin(0);
	sampler = start_and_hold(start);
	missed = stats_of(sampler).missed;
	hold_retrieve = false;
	await_ticks(sampler, stats_of(sampler).ticks + 40);
	ck_assert_uint_ge(stats_of(sampler).missed - missed, 28);
	(void)stop(sampler);
	end();
}
END_TEST

/* No time of the grid of retrieves is used twice, however late the retrieves are. */
START_TEST(retrieves_have_a_grid_of_their_own)
{
	enum { TICKS = 20 };
	struct incstack_sampler *sampler;
	struct incstack_sampler_options options = {.size = sizeof(options),
						   .interval_ns = INTERVAL,
						   .retrieve_ns = UINT64_C(1) * TICKS * INTERVAL,
						   .n = 1,
						   .operation = operation,
						   .retrieve = retrieve};
	begin(0);
	options.safepoint = safepoint;
	ck_assert_int_eq(incstack_sampler_create(&options, &sampler), 0);
	while (atomic_load(&retrieved) < 4)
		sched_yield();
	/* While it stops, it may call once more. No ticks are counted then. */
	const unsigned before_stop = atomic_load(&retrieved);
	ck_assert_uint_ge(stop(sampler).ticks, TICKS * before_stop - 1);
	end();
}
END_TEST

static void no_retrieve(struct incstack_sampler *sampler, void *argument)
{
	(void)sampler;
	(void)argument;
}

START_TEST(options_at_the_bounds)
{
	struct incstack_sampler *sampler;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	const struct incstack_sampler_options good = {.size = sizeof(good),
						      .safepoint = safepoint,
						      .interval_ns = INCSTACK_SAMPLER_INTERVAL_MIN,
						      .n = INT32_MAX,
						      .operation = operation};
	ck_assert_int_eq(incstack_sampler_create(&good, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_sampler_create(NULL, &sampler), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_sampler_create(&good, &sampler), 0);
	incstack_sampler_destroy(sampler, NULL);
	struct incstack_sampler_options bad[] = {good, good, good, good, good, good, good, good};
	bad[0].size--;
	bad[1].safepoint = NULL;
	bad[2].operation = NULL;
	bad[3].interval_ns--;
	bad[4].n++;
	bad[5].flags = UINT32_MAX;
	bad[6].retrieve_ns = INTERVAL; /* and nobody to call */
	bad[7].retrieve = no_retrieve; /* and never */
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(incstack_sampler_create(&bad[i], &sampler), INCSTACK_EINVAL);
	incstack_safepoint_destroy(safepoint);
}
END_TEST

START_TEST(arguments)
{
	struct incstack_sampler *sampler;
	struct incstack_sampler_stats stats = {.size = sizeof(stats) - 1};
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	const struct incstack_sampler_options options = {.size = sizeof(options),
							 .safepoint = safepoint,
							 .interval_ns = INTERVAL,
							 .operation = operation};
	ck_assert_int_eq(incstack_sampler_create(&options, &sampler), 0);
	ck_assert_int_eq(incstack_sampler_stats(NULL, &stats), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_sampler_stats(sampler, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_sampler_stats(sampler, &stats), INCSTACK_EINVAL);
	incstack_sampler_destroy(NULL, NULL);
	stats.ticks = UINT64_MAX;
	incstack_sampler_destroy(sampler, &stats);
	ck_assert_uint_eq(stats.ticks, UINT64_MAX); /* its size was wrong */
	ck_assert_int_eq(incstack__safepoint_run_operation(safepoint, 1, 0, operation, NULL),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_safepoint_resume(safepoint, NULL), INCSTACK_EINVAL);
	incstack_safepoint_destroy(safepoint);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sampler");
	TCase *tests = tcase_create("all");
	tcase_add_test(tests, partial);
	tcase_add_test(tests, partial_with_waiting_threads);
	tcase_add_test(tests, full);
	tcase_add_test(tests, nobody_polls_partial);
	tcase_add_test(tests, nobody_polls_full);
	tcase_add_loop_test(tests, a_long_sleep_ends_at_destroy, 0, 2);
	tcase_add_loop_test(tests, requests_are_used_again, 0, 2);
	tcase_add_test(tests, destroy_counts_what_was_due);
	tcase_add_test(tests, ticks_after_a_retrieve_are_skipped);
	tcase_add_test(tests, retrieves_have_a_grid_of_their_own);
	tcase_add_test(tests, options_at_the_bounds);
	tcase_add_test(tests, arguments);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
