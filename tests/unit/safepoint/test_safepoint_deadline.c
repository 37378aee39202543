/* SPDX-License-Identifier: MIT
 *
 * Tests the deadline of a request with a clock by hand, so that no other process can make a poll late.
 */
#include <stdbool.h>
#include <time.h>

#include <incstack/safepoint.h>

#include "run_suite.h"

enum { THREADS = 3, READING_NS = 1000 };

static struct incstack_safepoint *safepoint;
static struct incstack_thread *threads[THREADS];
static struct incstack_request *request;
static unsigned samples, completions;
static uint64_t time_ns = 1;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

/* Each reading of the clock takes time, so a wait comes to its end. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	time_ns += READING_NS;
	*time = (struct timespec){.tv_sec = (time_t)(time_ns / 1000000000),
				  .tv_nsec = (long)(time_ns % 1000000000)};
	return 0;
}

static void sample(const struct incstack_ticket *ticket, void *argument)
{
	(void)ticket, (void)argument;
	samples++;
}

static void count_completion(struct incstack_request *done,
			     const struct incstack_request_result *result, void *argument)
{
	(void)done, (void)argument;
	ck_assert_uint_eq(result->state, INCSTACK_REQUEST_TIMED_OUT);
	completions++;
}

static void begin(void)
{
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(incstack_safepoint_attach(safepoint, &threads[i]), 0);
}

static void end(void)
{
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(incstack_thread_detach(threads[i]), 0);
	incstack_safepoint_destroy(safepoint);
}

static void ask_all(uint64_t deadline)
{
	struct incstack_request_options options = {
		.size = sizeof(options),
		.n = THREADS,
		.deadline_ns = deadline,
		.operation = sample,
		.completed = count_completion,
	};
	ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), 0);
}

static void expect_timed_out(unsigned absent)
{
	struct incstack_request_result result = {.size = sizeof(result)};
	ck_assert_int_eq(incstack_request_wait(request, 0, &result), 0);
	ck_assert_uint_eq(result.state, INCSTACK_REQUEST_TIMED_OUT);
	ck_assert_uint_eq(result.absent, absent);
	incstack_request_release(request);
}

START_TEST(a_wait_ends_at_the_deadline)
{
	begin();
	ask_all(1000 * READING_NS);
	incstack_thread_poll(threads[0]);
	ck_assert_int_eq(incstack_request_wait(request, 1, NULL), INCSTACK_ETIMEDOUT);
	ck_assert_uint_eq(completions, 0);
	ck_assert_int_eq(incstack_request_wait(request, 0, NULL), 0);
	ck_assert_uint_eq(completions, 1);
	ck_assert_uint_eq(samples, 1);
	expect_timed_out(2);
	end();
}
END_TEST

START_TEST(a_late_poll_ends_the_request)
{
	begin();
	ask_all(1000 * READING_NS);
	time_ns += 1000 * READING_NS;
	incstack_thread_poll(threads[0]);
	ck_assert_uint_eq(completions, 1);
	ck_assert_uint_eq(samples, 0);
	expect_timed_out(3);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("safepoint: deadline");
	TCase *tests = tcase_create("deadline");
	tcase_add_test(tests, a_wait_ends_at_the_deadline);
	tcase_add_test(tests, a_late_poll_ends_the_request);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
