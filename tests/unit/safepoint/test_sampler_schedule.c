/* SPDX-License-Identifier: MIT
 *
 * Tests what the sampler's thread, and that of another sampler, ask of the scheduler. The system's answers are made by hand.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <incstack/sampler.h>

#include "run_suite.h"
#include "safepoint/prompt.h"

static struct incstack_safepoint *safepoint;

static void operation(const struct incstack_ticket *ticket, void *argument)
{
	(void)ticket;
	(void)argument;
}

static struct incstack_sampler_stats stats_of(struct incstack_sampler *sampler)
{
	struct incstack_sampler_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_sampler_stats(sampler, &stats), 0);
	return stats;
}

/* A sampler that has had two ticks, so its thread has asked. */
static struct incstack_sampler *begin(uint32_t flags)
{
	struct incstack_sampler_options options = {.size = sizeof(options),
						   .interval_ns = 100000,
						   .n = 1,
						   .flags = flags,
						   .operation = operation};
	struct incstack_sampler *sampler;
	ck_assert_int_eq(incstack_safepoint_create(NULL, &safepoint), 0);
	options.safepoint = safepoint;
	ck_assert_int_eq(incstack_sampler_create(&options, &sampler), 0);
	while (stats_of(sampler).ticks < 2)
		sched_yield();
	return sampler;
}

static void end(struct incstack_sampler *sampler)
{
	incstack_sampler_destroy(sampler, NULL);
	incstack_safepoint_destroy(safepoint);
}

/* The answer of the system to a thread that wants a real-time priority. */
static atomic_int answer_to_real_time, asked_for_real_time;

/* The answer to a thread that asks for its scheduling, and what the thread then requests. */
enum { UNKNOWN = -1 };
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};
static struct scheduling told, wish;
static atomic_int answer_to_question, wishes;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, void *b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, void *b, long c, long d, long e, long f)
{
	enum { POLICY = 1, FIFO = 1 };
	if (number == SYS_sched_setattr && ((const uint32_t *)b)[POLICY] == FIFO) {
		atomic_fetch_add(&asked_for_real_time, 1);
		return atomic_load(&answer_to_real_time);
	}
	if (number == SYS_sched_setattr) {
		atomic_fetch_add(&wishes, 1);
		wish = *(const struct scheduling *)b;
	}
	if (number == SYS_sched_getattr && told.size != 0) {
		*(struct scheduling *)b = told;
		return atomic_load(&answer_to_question);
	}
	return __real_syscall(number, a, b, c, d, e, f);
}

START_TEST(real_time_is_told_of)
{
	const bool wanted = _i % 2, given = _i / 2;
	atomic_store(&answer_to_real_time, given ? 0 : -1);
	struct incstack_sampler *sampler = begin(wanted ? INCSTACK_SAMPLER_REAL_TIME : 0);
	ck_assert_int_eq(atomic_load(&asked_for_real_time), wanted);
	ck_assert_uint_eq(stats_of(sampler).real_time, wanted && given);
	end(sampler);
}
END_TEST

/* The sampler's thread asks for short slices and for nothing else: its nice value stays. A thread
 * that is scheduled by another policy, or by an unknown one, is left alone. */
START_TEST(only_the_slice_changes)
{
	const bool usual = _i < 2, known = _i != 3;
	told = (struct scheduling){
		.size = sizeof(told), .policy = usual ? SCHED_OTHER : SCHED_BATCH, .nice = 7 * _i};
	if (!known)
		told.policy = SCHED_OTHER;
	atomic_store(&answer_to_question, known ? 0 : UNKNOWN);
	end(begin(0));
	ck_assert_int_eq(atomic_load(&wishes), usual);
	if (usual) {
		ck_assert_uint_eq(wish.policy, SCHED_OTHER);
		ck_assert_int_eq(wish.nice, told.nice);
		ck_assert_uint_gt(wish.runtime, 0);
		ck_assert_uint_eq(wish.flags, 1); /* children do not inherit it */
	}
}
END_TEST

START_TEST(another_thread_asks_for_the_same)
{
	told = (struct scheduling){.size = sizeof(told), .policy = SCHED_OTHER, .nice = 3};
	prctl(PR_SET_TIMERSLACK, 50000UL);
	ck_assert(!incstack__be_prompt(false));
	ck_assert_int_eq(prctl(PR_GET_TIMERSLACK), 1);
	ck_assert_int_eq(atomic_load(&asked_for_real_time), 0);
	ck_assert_int_eq(atomic_load(&wishes), 1);
	ck_assert_int_eq(wish.nice, 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("the sampler's thread");
	TCase *tests = tcase_create("scheduling");
	tcase_add_loop_test(tests, real_time_is_told_of, 0, 4);
	tcase_add_loop_test(tests, only_the_slice_changes, 0, 4);
	tcase_add_test(tests, another_thread_asks_for_the_same);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
