/* SPDX-License-Identifier: MIT
 *
 * Tests requests for threads that cannot be held, because another requester holds them or a full
 * safepoint stops them. Also tests requests whose handle was given up, the exact split of a
 * request among threads, and the child of a fork.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <incstack/sampler.h>

#include "held_locks.h"
#include "ask_one.h"
#include "run_suite.h"
#include "safepoint/safepoint.h"

static struct incstack_safepoint *safepoint;
static struct incstack_thread *thread;
static unsigned samples, behalf;

static void sample(const struct incstack_ticket *ticket, void *argument)
{
	(void)argument;
	samples++;
	behalf += ticket->on_behalf;
}

static struct incstack_request *ask_for(uint32_t n, uint32_t flags, uint64_t deadline)
{
	struct incstack_request_options options = {
		.size = sizeof(options),
		.n = n,
		.flags = flags,
		.deadline_ns = deadline,
		.operation = sample,
	};
	struct incstack_request *request = NULL;
	ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), 0);
	return request;
}

static uint32_t state_of(struct incstack_request *request)
{
	struct incstack_request_result result = {.size = sizeof(result)};
	(void)incstack_request_wait(request, 1, &result);
	return result.state;
}

static void begin(void)
{
	samples = behalf = 0;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	ck_assert_int_eq(incstack_safepoint_attach(safepoint, &thread), 0);
}

static void end(void)
{
	ck_assert_int_eq(incstack_thread_detach(thread), 0);
	incstack_safepoint_destroy(safepoint);
}

/* Both run while the outer requester holds the thread. */
static void two_more(const struct incstack_ticket *ticket, void *argument)
{
	struct incstack_request **inner = argument;
	sample(ticket, NULL);
	inner[0] = ask_for(1, INCSTACK_REQUEST_WAITING, 0);
	ck_assert_int_eq(ask_one(safepoint, thread->id, sample, NULL, &inner[1]), 0);
	ck_assert_uint_eq(state_of(inner[0]), INCSTACK_REQUEST_OPEN);
}

START_TEST(a_held_thread_is_sampled_by_its_holder)
{
	struct incstack_request *outer, *inner[2];
	begin();
	incstack_thread_wait_begin(thread);
	ck_assert_int_eq(ask_one(safepoint, thread->id, two_more, inner, &outer), 0);
	ck_assert_uint_eq(state_of(outer), INCSTACK_REQUEST_COMPLETE);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(state_of(inner[i]), INCSTACK_REQUEST_COMPLETE);
		incstack_request_release(inner[i]);
	}
	ck_assert_uint_eq(samples, 3);
	ck_assert_uint_eq(behalf, 3);
	incstack_request_release(outer);
	incstack_thread_wait_end(thread);
	end();
}
END_TEST

START_TEST(a_stopped_thread_is_sampled_at_resume)
{
	begin();
	incstack_thread_wait_begin(thread);
	ck_assert_int_eq(incstack_safepoint_stop(safepoint, NULL, 0, NULL), 0);
	struct incstack_request *request = ask_for(1, INCSTACK_REQUEST_WAITING, 0);
	struct incstack_request *expired = ask_for(1, INCSTACK_REQUEST_WAITING, 0);
	ck_assert_uint_eq(state_of(request), INCSTACK_REQUEST_OPEN);
	incstack__request_expire(expired);
	ck_assert_uint_eq(state_of(expired), INCSTACK_REQUEST_TIMED_OUT);
	ck_assert_uint_eq(samples, 0);
	incstack_safepoint_resume(safepoint, NULL);
	ck_assert_uint_eq(state_of(request), INCSTACK_REQUEST_COMPLETE);
	ck_assert_uint_eq(samples, 1);
	ck_assert_uint_eq(behalf, 1);
	incstack_request_release(request);
	incstack_request_release(expired);
	incstack_thread_wait_end(thread);
	end();
}
END_TEST

START_TEST(the_stopper_itself_is_sampled_at_resume)
{
	begin();
	ck_assert_int_eq(incstack_safepoint_stop(safepoint, thread, 0, NULL), 0);
	struct incstack_request *request = ask_for(1, INCSTACK_REQUEST_WAITING, 0);
	incstack_safepoint_resume(safepoint, thread);
	ck_assert_uint_eq(state_of(request), INCSTACK_REQUEST_COMPLETE);
	incstack_request_release(request);
	end();
}
END_TEST

/* Begins to wait when the thread is counted as running, and is about to be claimed. */
static void go_safe(void *context, enum incstack__step step)
{
	(void)context;
	if (step == INCSTACK__STEP_ARM && !thread->word)
		incstack_thread_wait_begin(thread);
}

START_TEST(who_goes_safe_before_the_claim_is_held)
{
	samples = behalf = 0;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	incstack__safepoint_hook(safepoint, go_safe, NULL);
	ck_assert_int_eq(incstack_safepoint_attach(safepoint, &thread), 0);
	struct incstack_request *request = ask_for(1, INCSTACK_REQUEST_WAITING, 0);
	ck_assert_uint_eq(state_of(request), INCSTACK_REQUEST_COMPLETE);
	ck_assert_uint_eq(behalf, 1);
	incstack_request_release(request);
	incstack_thread_wait_end(thread);
	/* Waiting threads are not wanted. */
	request = ask_for(1, 0, 0);
	ck_assert_uint_eq(state_of(request), INCSTACK_REQUEST_SHORT);
	incstack_request_release(request);
	incstack_thread_wait_end(thread);
	end();
}
END_TEST

/* They are not counted either. */
START_TEST(who_waits_is_not_running)
{
	struct incstack_request_result result = {.size = sizeof(result)};
	begin();
	incstack_thread_wait_begin(thread);
	struct incstack_request *request = ask_for(1, 0, 0);
	ck_assert_int_eq(incstack_request_wait(request, 0, &result), 0);
	ck_assert_uint_eq(result.state, INCSTACK_REQUEST_SHORT);
	ck_assert_uint_eq(result.running, 0);
	ck_assert_uint_eq(samples, 0);
	incstack_request_release(request);
	incstack_thread_wait_end(thread);
	end();
}
END_TEST

START_TEST(abandoned_requests_make_room)
{
	begin(); /* a thread that never polls */
	for (int i = 0; i < 3 * INCSTACK_WORD_REQUESTS; i++) {
		incstack_request_release(ask_for(1, 0, 1));
		usleep(1);
	}
	/* Requests without a deadline, or with a handle, stay. */
	struct incstack_request *request, *open[INCSTACK_WORD_REQUESTS];
	struct incstack_request_options options = {
		.size = sizeof(options), .n = 1, .operation = sample};
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++) {
		open[i] = ask_for(1, 0, i % 2 ? 1 : 0);
		if (i % 2 == 0)
			incstack_request_release(open[i]);
	}
	usleep(1);
	ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), INCSTACK_EBUSY);
	ck_assert_uint_eq(state_of(open[1]), INCSTACK_REQUEST_TIMED_OUT);
	for (int i = 1; i < INCSTACK_WORD_REQUESTS; i += 2)
		incstack_request_release(open[i]);
	incstack_request_release(ask_for(1, 0, 0));
	end();
}
END_TEST

/* The rounded share by the definition: the whole number nearest to n * w / (r + w), halves
 * up; found without a division. */
static uint32_t nearest(uint32_t r, uint32_t w, uint32_t n)
{
	unsigned __int128 twice = (unsigned __int128)2 * n * w, all = (uint64_t)r + w;
	uint64_t low = 0, high = n; /* the largest x with (2x - 1) * all <= twice */
	while (low < high) {
		uint64_t x = (low + high + 1) / 2;
		if ((2 * (unsigned __int128)x - 1) * all <= twice)
			low = x;
		else
			high = x - 1;
	}
	return (uint32_t)low;
}

static void check_split(uint32_t r, uint32_t w, uint32_t n)
{
	uint32_t from_r, from_w;
	incstack__split(r, w, n, &from_r, &from_w);
	uint64_t all = (uint64_t)r + w, m = n < all ? n : all;
	ck_assert_uint_eq(from_w, nearest(r, w, (uint32_t)m));
	ck_assert_uint_eq(from_r + (uint64_t)from_w, m);
	ck_assert(from_r <= r && from_w <= w);
}

START_TEST(the_split_in_exact_arithmetic)
{
	for (uint32_t r = 0; r < 20; r++)
		for (uint32_t w = 0; w < 20; w++)
			for (uint32_t n = 0; n < 45; n++)
				check_split(r, w, n);
	static const uint32_t edges[] = {
		0, 1, 2, INT32_MAX, 1u << 31, UINT32_MAX - 2, UINT32_MAX - 1, UINT32_MAX};
	for (int r = 0; r < 8; r++)
		for (int w = 0; w < 8; w++)
			for (int n = 0; n < 8; n++)
				check_split(edges[r], edges[w], edges[n]);
	uint64_t x = 1;
	for (int i = 0; i < 20000; i++) {
		uint32_t v[3];
		for (int j = 0; j < 3; j++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			v[j] = (uint32_t)(x >> 32) >> (x >> 27 & 31);
		}
		check_split(v[0], v[1], v[2]);
	}
}
END_TEST

/* ---- the child of a fork ---- */

static struct incstack_sampler *sampler;
static struct incstack_request *open_request;

/* 0, or the line that failed: the child must not write to the parent's record of this
 * test. A hang ends by the alarm. */
static int child_of_fork(void)
{
#define REQUIRE(what) \
	do { \
		if (!(what)) \
			return __LINE__; \
	} while (0)
	struct incstack_request_options options = {
		.size = sizeof(options), .n = 1, .operation = sample};
	struct incstack_request_result result = {.size = sizeof(result)};
	struct incstack_request *request;
	struct incstack_thread *other;
	incstack_thread_poll(thread); /* armed and stopped: would run the operation, and sleep */
	REQUIRE(samples == 0 && thread->word == 0);
	REQUIRE(incstack_thread_wait_begin(thread) == 0);
	REQUIRE(incstack_thread_wait_end(thread) == 0);
	REQUIRE(incstack_request_start(safepoint, &options, &request) == INCSTACK_EFORKED);
	REQUIRE(incstack_request_wait(open_request, 0, &result) == INCSTACK_EFORKED);
	incstack_request_release(open_request);
	REQUIRE(incstack_safepoint_stop(safepoint, thread, 0, NULL) == INCSTACK_EFORKED);
	REQUIRE(incstack_safepoint_resume(safepoint, thread) == INCSTACK_EFORKED);
	REQUIRE(incstack_safepoint_attach(safepoint, &other) == INCSTACK_EFORKED);
	REQUIRE(incstack_thread_detach(thread) == INCSTACK_EFORKED);
	struct incstack_sampler_stats stats = {.size = sizeof(stats)};
	incstack_sampler_destroy(sampler, &stats);
	incstack_safepoint_destroy(safepoint);
	/* Its own coordinator works. */
	REQUIRE(incstack_safepoint_create(NULL, &safepoint) == 0);
	REQUIRE(incstack_safepoint_attach(safepoint, &thread) == 0);
	REQUIRE(incstack_request_start(safepoint, &options, &request) == 0);
	incstack_thread_poll(thread);
	REQUIRE(incstack_request_wait(request, 0, &result) == 0);
	REQUIRE(samples == 1 && result.state == INCSTACK_REQUEST_COMPLETE);
	incstack_request_release(request);
	REQUIRE(incstack_thread_detach(thread) == 0);
	incstack_safepoint_destroy(safepoint);
	return 0;
#undef REQUIRE
}

static atomic_bool over;

static void *stopper(void *argument)
{
	unsigned missing;
	(void)argument;
	while (!over)
		incstack_safepoint_stop(safepoint, NULL, 1000000, &missing);
	return NULL;
}

static void *requester(void *argument)
{
	struct incstack_request_options options = {
		.size = sizeof(options), .n = 1, .operation = sample};
	while (!over) {
		struct incstack_request *request;
		if (incstack_request_start(safepoint, &options, &request))
			continue;
		incstack__request_expire(request);
		incstack_request_release(request);
	}
	return argument;
}

START_TEST(fork_with_requests_open)
{
	pthread_t threads[2];
	struct incstack_sampler_options options = {
		.size = sizeof(options), .interval_ns = 1000000, .n = 1, .operation = sample};
	begin();
	options.safepoint = safepoint;
	open_request = ask_for(1, 0, 0);
	ck_assert_int_eq(incstack_sampler_create(&options, &sampler), 0);
	over = false;
	pthread_create(&threads[0], NULL, stopper, NULL);
	pthread_create(&threads[1], NULL, requester, NULL);
	for (int i = 0; i < 30; i++) {
		int status = 0;
		usleep(300);
		pid_t child = fork();
		if (child == 0) {
			alarm(200);
			_exit(child_of_fork() % 256);
		}
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_msg(status == 0, "child: status %x", (unsigned)status);
	}
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	incstack_sampler_destroy(sampler, NULL);
	incstack__request_expire(open_request);
	incstack_request_release(open_request);
	end();
}
END_TEST

/* Whichever comes first ends the wait. With the other one it would take an hour. */
START_TEST(wait_ends_by_what_comes_first)
{
	const uint64_t hour = UINT64_C(3600) * 1000000000;
	struct incstack_request *request;

	begin();
	request = ask_for(1, 0, 20000000);
	ck_assert_int_eq(incstack_request_wait(request, hour, NULL), 0);
	ck_assert_uint_eq(state_of(request), INCSTACK_REQUEST_TIMED_OUT);
	incstack_request_release(request);
	request = ask_for(1, 0, hour);
	ck_assert_int_eq(incstack_request_wait(request, 20000000, NULL), INCSTACK_ETIMEDOUT);
	incstack__request_expire(request);
	incstack_request_release(request);
	request = ask_for(1, 0, 0);
	ck_assert_int_eq(incstack_request_wait(request, 20000000, NULL), INCSTACK_ETIMEDOUT);
	incstack__request_expire(request);
	incstack_request_release(request);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("safepoint_claims");
	TCase *tests = tcase_create("claims");
	tcase_add_test(tests, a_held_thread_is_sampled_by_its_holder);
	tcase_add_test(tests, a_stopped_thread_is_sampled_at_resume);
	tcase_add_test(tests, the_stopper_itself_is_sampled_at_resume);
	tcase_add_test(tests, who_goes_safe_before_the_claim_is_held);
	tcase_add_test(tests, who_waits_is_not_running);
	tcase_add_test(tests, abandoned_requests_make_room);
	tcase_add_test(tests, the_split_in_exact_arithmetic);
	tcase_add_test(tests, fork_with_requests_open);
	tcase_add_test(tests, wait_ends_by_what_comes_first);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
