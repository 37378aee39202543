/* SPDX-License-Identifier: MIT
 *
 * Tests of the safepoint coordinator that need no second processor: the waiting-thread rule,
 * tickets, a deadline in every state, exits. One thread of the system plays many threads of the
 * coordinator.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "ask_one.h"
#include "run_suite.h"
#include "safepoint/safepoint.h"

#define MAX 32

static struct incstack_safepoint *safepoint;
static struct incstack_thread *threads[MAX];
static unsigned attached, ran[MAX], behalf, total, completions;
static struct incstack_request *request;

static int index_of(const struct incstack_thread *thread)
{
	for (int i = 0; i < MAX; i++)
		if (threads[i] == thread)
			return i;
	return -1;
}

static void sample(const struct incstack_ticket *ticket, void *argument)
{
	(void)argument;
	ran[index_of(ticket->thread)]++;
	behalf += ticket->on_behalf;
	total++;
}

static void count_completion(struct incstack_request *done,
			     const struct incstack_request_result *result, void *argument)
{
	(void)done, (void)argument;
	ck_assert_uint_ne(result->state, INCSTACK_REQUEST_OPEN);
	completions++;
}

static void begin(unsigned running, unsigned waiting)
{
	attached = behalf = total = completions = 0;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	for (; attached < running + waiting; attached++) {
		ran[attached] = 0;
		ck_assert_int_eq(incstack_safepoint_attach(safepoint, &threads[attached]), 0);
		if (attached >= running)
			ck_assert_int_eq(incstack_thread_wait_begin(threads[attached]), 0);
	}
}

static void end(void)
{
	for (unsigned i = 0; i < attached; i++) {
		incstack_thread_wait_end(threads[i]);
		ck_assert_int_eq(incstack_thread_detach(threads[i]), 0);
	}
	incstack_safepoint_destroy(safepoint);
}

static void ask_for(uint32_t n, uint32_t flags)
{
	struct incstack_request_options options = {
		.size = sizeof(options),
		.n = n,
		.flags = flags,
		.operation = sample,
		.completed = count_completion,
	};
	ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), 0);
}

static struct incstack_request_result result(void)
{
	struct incstack_request_result got = {.size = sizeof(got)};
	(void)incstack_request_wait(request, 1, &got);
	return got;
}

static void poll_all(void)
{
	for (unsigned i = 0; i < attached; i++)
		incstack_thread_poll(threads[i]);
}

static void check_rule(unsigned running, unsigned waiting, uint32_t n, unsigned r, unsigned w)
{
	begin(running, waiting);
	ask_for(n, INCSTACK_REQUEST_WAITING);
	ck_assert_uint_eq(behalf, w);
	ck_assert_uint_eq(total, w);
	poll_all();
	poll_all();
	ck_assert_uint_eq(total - behalf, r);
	for (unsigned i = 0; i < attached; i++)
		ck_assert_uint_le(ran[i], 1);
	ck_assert_uint_eq(result().state, INCSTACK_REQUEST_COMPLETE);
	ck_assert_uint_eq(completions, 1);
	incstack_request_release(request);
	end();
}

START_TEST(rule_of_waiting_threads)
{
	check_rule(15, 6, 4, 3, 1); /* ICPE'15 */
	check_rule(7, 3, 4, 3, 1);  /* thesis, text */
	check_rule(3, 1, 3, 2, 1);  /* thesis, figure 4.1 */
}
END_TEST

START_TEST(split_uses_what_there_is)
{
	uint32_t r, w;
	incstack__split(1, 1, 9, &r, &w);
	ck_assert(r == 1 && w == 1);
	incstack__split(0, 0, 9, &r, &w);
	ck_assert(r == 0 && w == 0);
	incstack__split(1, 1, 1, &r, &w); /* a half goes to the waiting threads */
	ck_assert(r == 0 && w == 1);
	for (uint32_t a = 0; a < 9; a++)
		for (uint32_t b = 0; b < 9; b++)
			for (uint32_t n = 1; n <= a + b; n++) {
				incstack__split(a, b, n, &r, &w);
				ck_assert(r <= a && w <= b && r + w == n);
				ck_assert(w == (2 * n * b + a + b) / (2 * (a + b)));
			}
}
END_TEST

START_TEST(losers_are_disarmed)
{
	begin(4, 0);
	ask_for(2, 0);
	incstack_thread_poll(threads[3]);
	incstack_thread_poll(threads[3]);
	ck_assert_uint_eq(result().state, INCSTACK_REQUEST_OPEN);
	incstack_thread_poll(threads[1]);
	ck_assert_uint_eq(result().state, INCSTACK_REQUEST_COMPLETE);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(atomic_load(&threads[i]->word), 0);
	ck_assert(ran[3] == 1 && ran[1] == 1 && total == 2);
	incstack_request_release(request);
	end();
}
END_TEST

START_TEST(going_safe_draws_and_leaving_gives_up)
{
	begin(3, 0);
	ask_for(3, 0);
	ck_assert_int_eq(incstack_thread_wait_begin(threads[0]), 0);
	ck_assert_uint_eq(ran[0], 1);
	ck_assert_int_eq(incstack_thread_detach(threads[2]), 0);
	attached = 2;
	incstack_thread_poll(threads[1]);
	ck_assert_uint_eq(result().state, INCSTACK_REQUEST_SHORT);
	ck_assert_uint_eq(result().taken, 2);
	ck_assert_uint_eq(completions, 1);
	incstack_request_release(request);
	end();
}
END_TEST

START_TEST(a_deadline_ends_it)
{
	begin(3, 0);
	ask_for(2, 0);
	incstack_thread_poll(threads[0]);
	incstack__request_expire(request);
	poll_all();
	ck_assert_uint_eq(total, 1);
	ck_assert_uint_eq(result().state, INCSTACK_REQUEST_TIMED_OUT);
	ck_assert_uint_eq(result().absent, 2);
	incstack__request_expire(request);
	ck_assert_uint_eq(completions, 1);
	incstack_request_release(request);
	end();
}
END_TEST

START_TEST(requests_overlap_up_to_the_word)
{
	struct incstack_request *open[INCSTACK_WORD_REQUESTS], *none;
	begin(2, 0);
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++) {
		ask_for(2, 0);
		open[i] = request;
	}
	ck_assert_int_eq(ask_one(safepoint, threads[0]->id, sample, NULL, &none), INCSTACK_EBUSY);
	poll_all();
	ck_assert_uint_eq(total, 2 * INCSTACK_WORD_REQUESTS);
	ck_assert_uint_eq(completions, INCSTACK_WORD_REQUESTS);
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++)
		incstack_request_release(open[i]);
	end();
}
END_TEST

START_TEST(a_request_finds_its_thread_anywhere)
{
	begin(1, 1);
	ask_one(safepoint, threads[1]->id, sample, NULL, &request);
	ck_assert(behalf == 1 && ran[1] == 1);
	incstack_request_release(request);
	ask_one(safepoint, threads[0]->id, sample, NULL, &request);
	ck_assert_uint_eq(total, 1);
	incstack_thread_poll(threads[0]);
	ck_assert(behalf == 1 && ran[0] == 1);
	incstack_request_release(request);
	end();
}
END_TEST

/* The allocator gives a new thread the place of the one that has gone. */
START_TEST(names_outlive_threads)
{
	begin(3, 0);
	const uint64_t ids[] = {threads[1]->id, threads[2]->id, threads[1]->id};
	struct incstack_request_options options = {
		.size = sizeof(options), .ids = ids, .count = 3, .n = 3, .operation = sample};
	ck_assert_int_eq(incstack_thread_detach(threads[2]), 0);
	ck_assert_int_eq(incstack_safepoint_attach(safepoint, &threads[2]), 0);
	ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), 0);
	poll_all();
	ck_assert(ran[1] == 1 && total == 1);
	ck_assert_uint_eq(result().state, INCSTACK_REQUEST_SHORT);
	incstack_request_release(request);
	ck_assert_int_eq(ask_one(safepoint, ids[1], sample, NULL, &request), 0);
	ck_assert_uint_eq(result().state, INCSTACK_REQUEST_SHORT);
	incstack_request_release(request);
	end();
}
END_TEST

static void misbehave(const struct incstack_ticket *ticket, void *argument)
{
	(void)argument;
	ck_assert_int_eq(incstack_thread_wait_begin(ticket->thread), INCSTACK_EBUSY);
	ck_assert_int_eq(incstack_thread_detach(ticket->thread), INCSTACK_EBUSY);
	ck_assert_int_eq(incstack_safepoint_stop(safepoint, ticket->thread, 0, NULL),
			 INCSTACK_EBUSY);
	incstack_thread_poll(ticket->thread);
	total++;
}

START_TEST(an_operation_cannot_go_safe)
{
	begin(1, 0);
	ck_assert_int_eq(ask_one(safepoint, threads[0]->id, misbehave, NULL, &request), 0);
	incstack_thread_poll(threads[0]);
	ck_assert_uint_eq(total, 1);
	incstack_request_release(request);
	end();
}
END_TEST

START_TEST(nobody_there)
{
	begin(0, 2);
	ask_for(1, 0);
	ck_assert_uint_eq(result().state, INCSTACK_REQUEST_SHORT);
	ck_assert_uint_eq(completions, 1);
	incstack_request_release(request);
	end();
}
END_TEST

static int expire_at;
static bool acted;

static void expire_at_step(void *context, enum incstack__step step)
{
	(void)context;
	if ((int)step != expire_at || acted || !request)
		return;
	acted = true;
	incstack__request_expire(request);
}

static void poll_first_armed(void *context, enum incstack__step step)
{
	(void)context;
	for (unsigned i = 0; step == INCSTACK__STEP_ARM && !acted && i < attached; i++) {
		acted = atomic_load(&threads[i]->word) != 0;
		incstack_thread_poll(threads[i]);
	}
}

static void begin_with(incstack__step_hook *hook)
{
	attached = behalf = total = completions = 0;
	request = NULL;
	acted = false;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	incstack__safepoint_hook(safepoint, hook, NULL);
	for (; attached < 3; attached++)
		ck_assert_int_eq(incstack_safepoint_attach(safepoint, &threads[attached]), 0);
}

START_TEST(a_deadline_in_every_step)
{
	for (expire_at = 0; expire_at < INCSTACK__STEP_COUNT; expire_at++) {
		begin_with(expire_at_step);
		ck_assert_int_eq(incstack_thread_wait_begin(threads[2]), 0);
		ask_for(2, INCSTACK_REQUEST_WAITING);
		incstack_thread_poll(threads[0]);
		incstack__request_expire(request);
		ck_assert_uint_eq(completions, 1);
		ck_assert_uint_ne(result().state, INCSTACK_REQUEST_OPEN);
		ck_assert_uint_le(total, 2);
		for (int i = 0; i < 2; i++)
			ck_assert_uint_eq(atomic_load(&threads[i]->word), 0);
		incstack_request_release(request);
		end();
	}
}
END_TEST

/* The ticket is drawn after the first of two bits was set: the starter takes back the second. */
START_TEST(bits_set_in_vain_are_taken_back)
{
	begin_with(poll_first_armed);
	ask_for(1, 0);
	ck_assert_uint_eq(total, 1);
	ck_assert_uint_eq(completions, 1);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(atomic_load(&threads[i]->word), 0);
	incstack_request_release(request);
	end();
}
END_TEST

static atomic_bool in_loop, leave_loop;

static void *polls_and_counts(void *counter)
{
	struct incstack_thread *self;
	if (incstack_safepoint_attach(safepoint, &self))
		return NULL;
	atomic_store(&in_loop, true);
	while (!atomic_load(&leave_loop)) {
		(*(volatile unsigned long *)counter)++; /* plain: the stop orders it */
		incstack_thread_poll(self);
	}
	incstack_thread_detach(self);
	return counter;
}

START_TEST(full_stop)
{
	unsigned long counters[3] = {0}, seen;
	pthread_t tids[3];
	uint32_t missing = 9;
	begin(0, 1);
	atomic_store(&leave_loop, false);
	for (int i = 0; i < 3; i++)
		pthread_create(&tids[i], NULL, polls_and_counts, &counters[i]);
	for (int round = 0; round < 20; round++) {
		ck_assert_int_eq(incstack_safepoint_stop(safepoint, NULL, 0, &missing), 0);
		ck_assert_uint_eq(missing, 0);
		seen = counters[0] + counters[1] + counters[2];
		usleep(500);
		ck_assert_uint_eq(seen, counters[0] + counters[1] + counters[2]);
		ck_assert_int_eq(incstack_safepoint_resume(safepoint, NULL), 0);
		usleep(500);
	}
	atomic_store(&leave_loop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(tids[i], NULL);
	end();
}
END_TEST

/* Notes the thread. In between it starts a request, which looks at all threads. */
static void note_and_request(const struct incstack_ticket *ticket, void *argument)
{
	((const struct incstack_thread **)argument)[total++] = ticket->thread;
	ck_assert_int_eq(ask_one(safepoint, 1, sample, NULL, &request), 0);
	incstack_request_release(request);
}

START_TEST(an_operation_runs_once_for_each)
{
	const struct incstack_thread *noted[3];
	unsigned long counter = 0;
	pthread_t tid;
	begin(0, 2);
	atomic_store(&leave_loop, false);
	atomic_store(&in_loop, false);
	pthread_create(&tid, NULL, polls_and_counts, &counter);
	while (!atomic_load(&in_loop))
		usleep(100);
	ck_assert_int_eq(incstack_safepoint_stop(safepoint, NULL, 0, NULL), 0);
	ck_assert_int_eq(incstack__safepoint_run_operation(safepoint, 3, INCSTACK_REQUEST_WAITING,
							   note_and_request, noted),
			 3);
	ck_assert(noted[0] == threads[0] && noted[1] == threads[1]);
	ck_assert_int_eq(index_of(noted[2]), -1);
	ck_assert_int_eq(incstack_safepoint_resume(safepoint, NULL), 0);
	atomic_store(&leave_loop, true);
	pthread_join(tid, NULL);
	end();
}
END_TEST

START_TEST(full_stop_gives_up)
{
	uint32_t missing = 0;
	begin(2, 1);
	ck_assert_int_eq(incstack_safepoint_stop(safepoint, threads[0], 1000000, &missing),
			 INCSTACK_ETIMEDOUT);
	ck_assert_uint_eq(missing, 1);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(atomic_load(&threads[i]->word), 0);
	ck_assert_int_eq(incstack_thread_wait_begin(threads[1]), 0);
	ck_assert_int_eq(incstack_safepoint_stop(safepoint, threads[0], 0, &missing), 0);
	ck_assert_int_eq(incstack_safepoint_resume(safepoint, threads[0]), 0);
	end();
}
END_TEST

START_TEST(arguments)
{
	struct incstack_request_options options = {.size = sizeof(options), .n = 1};
	begin(1, 0);
	ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), INCSTACK_EINVAL);
	options.operation = sample;
	options.n = 0;
	ck_assert_int_eq(incstack_request_start(safepoint, &options, &request), INCSTACK_EINVAL);
	incstack_safepoint_destroy(safepoint); /* does nothing: threads are attached */
	ck_assert(incstack__safepoint_in_use(safepoint));
	ck_assert_int_eq(incstack_thread_wait_end(threads[0]), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_thread_wait_begin(threads[0]), 0);
	ck_assert_int_eq(incstack_thread_wait_begin(threads[0]), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_thread_detach(threads[0]), INCSTACK_EINVAL);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("safepoint");
	TCase *tests = tcase_create("all");
	tcase_add_test(tests, rule_of_waiting_threads);
	tcase_add_test(tests, split_uses_what_there_is);
	tcase_add_test(tests, losers_are_disarmed);
	tcase_add_test(tests, going_safe_draws_and_leaving_gives_up);
	tcase_add_test(tests, a_deadline_ends_it);
	tcase_add_test(tests, requests_overlap_up_to_the_word);
	tcase_add_test(tests, a_request_finds_its_thread_anywhere);
	tcase_add_test(tests, names_outlive_threads);
	tcase_add_test(tests, an_operation_cannot_go_safe);
	tcase_add_test(tests, nobody_there);
	tcase_add_test(tests, a_deadline_in_every_step);
	tcase_add_test(tests, bits_set_in_vain_are_taken_back);
	tcase_add_test(tests, full_stop);
	tcase_add_test(tests, an_operation_runs_once_for_each);
	tcase_add_test(tests, full_stop_gives_up);
	tcase_add_test(tests, arguments);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
