/* SPDX-License-Identifier: MIT
 *
 * The ticker: it waits until the times of a grid, is woken up, and tells if its timers are gone.
 */
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "run_suite.h"
#include "ticker.h"

#define US UINT64_C(1000)
#define HOUR (UINT64_C(3600) * 1000 * 1000 * US)

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t left(const struct agent_ticker *ticker, unsigned i)
{
	struct itimerspec times;

	ck_assert_int_eq(timerfd_gettime(ticker->timers[i], &times), 0);
	return (uint64_t)times.it_value.tv_sec * 1000000000 + (uint64_t)times.it_value.tv_nsec;
}

/* As the sampler waits: until the time has come. Returns the number of waits. */
static unsigned wait_until(struct agent_ticker *ticker, uint64_t due)
{
	unsigned waits = 0;

	for (; now() < due; waits++) {
		agent_ticker_wait(ticker, due);
		ck_assert(ticker->works);
	}
	return waits;
}

/* If it did not wait, the number of its waits would be large. */
START_TEST(it_waits_until_each_time)
{
	const uint64_t interval = 200 * US;
	struct agent_ticker ticker;
	uint64_t due = now() + 10 * interval;
	unsigned waits = 0;

	agent_ticker_open(&ticker);
	agent_ticker_set(&ticker, due, interval);
	for (unsigned i = 0; i < 200; i++, due += interval)
		waits += wait_until(&ticker, due);
	ck_assert_uint_le(waits, 400); /* one for an expiry that was missed, and one more */
	agent_ticker_close(&ticker);
}
END_TEST

START_TEST(the_next_time_is_set_before_a_wait)
{
	const uint64_t interval = HOUR;
	struct agent_ticker ticker;
	uint64_t due = now() - 1;

	agent_ticker_open(&ticker);
	agent_ticker_set(&ticker, due, interval);
	agent_ticker_wait(&ticker, due);
	ck_assert_uint_gt(left(&ticker, 0), interval);
	ck_assert_uint_le(left(&ticker, 0), 2 * interval);
	ck_assert_uint_gt(left(&ticker, 1), 0);
	ck_assert_uint_le(left(&ticker, 1), interval);
	agent_ticker_close(&ticker);
}
END_TEST

/* The grid continues where `set` says, with either timer. */
START_TEST(it_is_woken_up_whichever_timer_it_reads)
{
	const uint64_t interval = HOUR;
	struct agent_ticker ticker;
	uint64_t due = now() + interval;

	agent_ticker_open(&ticker);
	agent_ticker_set(&ticker, due, interval);
	for (unsigned i = 0; i < 4; i++, due += HOUR) {
		agent_ticker_wake(&ticker);
		agent_ticker_wait(&ticker, due);
		ck_assert(ticker.works);
		agent_ticker_set(&ticker, due, interval);
		ck_assert_uint_gt(left(&ticker, 0), HOUR / 2);
		ck_assert_uint_gt(left(&ticker, 1), left(&ticker, 0));
	}
	agent_ticker_close(&ticker);
}
END_TEST

START_TEST(timers_that_are_gone_are_noticed)
{
	const uint64_t interval = HOUR;
	struct agent_ticker ticker;
	uint64_t due = now() + interval;

	agent_ticker_open(&ticker);
	ck_assert(ticker.works);
	agent_ticker_set(&ticker, due, interval);
	close(ticker.timers[0]);
	agent_ticker_wake(&ticker);
	agent_ticker_wait(&ticker, due);
	ck_assert(!ticker.works);
	ticker.timers[0] = -1;
	agent_ticker_close(&ticker);
	ck_assert_int_eq(ticker.timers[1], -1);
}
END_TEST

/* Each thread is woken at most every 0.8 ms, but there are not more than eight. */
START_TEST(threads_share_short_intervals)
{
	ck_assert_uint_eq(agent_ticker_threads(1), 8);
	ck_assert_uint_eq(agent_ticker_threads(100 * US), 8);
	ck_assert_uint_eq(agent_ticker_threads(200 * US), 4);
	ck_assert_uint_eq(agent_ticker_threads(401 * US), 1);
	ck_assert_uint_eq(agent_ticker_threads(1000 * US), 1);
	ck_assert_uint_eq(agent_ticker_threads(HOUR), 1);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("ticker");
	Suite *suite = suite_create("agent ticker");

	tcase_add_test(tests, it_waits_until_each_time);
	tcase_add_test(tests, the_next_time_is_set_before_a_wait);
	tcase_add_test(tests, it_is_woken_up_whichever_timer_it_reads);
	tcase_add_test(tests, timers_that_are_gone_are_noticed);
	tcase_add_test(tests, threads_share_short_intervals);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
