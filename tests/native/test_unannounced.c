/* SPDX-License-Identifier: MIT
 *
 * Tests frames that are left without notice, by __builtin_longjmp; each leaves a thunk behind.
 * After any number of them, the number of thunks in use and the work of a sample are as at the
 * start. The same holds for stacks that came and went.
 */
#include <pthread.h>

#include "../unit/run_suite.h"
#include "traced.h"

enum {
	ROOM = 1 << 20,
	EXITS = 1000000,
	RESERVE_EVERY = 500,
	SAMPLES_LEFT = 3,
	THREADS = 1000,
	FIBERS = 5000
};

static struct incstack_stack *current;
static void *environment[5];

__attribute__((noinline)) static void sample(void)
{
	const uintptr_t *fp = __builtin_frame_address(0);
	struct incstack_top top = {.pc = fp[1], .sp = (uintptr_t)(fp + 2), .fp = fp[0]};
	ck_assert_int_eq(incstack_stack_sample(current, 0, 1, &top), 0);
}

static void retrieve(void)
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(current, &tree), 0);
	incstack_tree_release(tree);
	ck_assert_int_eq(incstack_stack_reserve(current, ROOM), 0);
}

__attribute__((noinline)) static void leave_from(int depth)
{
	if (depth > 0) {
		leave_from(depth - 1);
	} else {
		for (int i = 0; i < SAMPLES_LEFT; i++)
			sample();
		__builtin_longjmp(environment, 1);
	}
	__asm__ volatile("");
}

__attribute__((noinline)) static void exit_once(void)
{
	if (!__builtin_setjmp(environment))
		leave_from(6);
	__asm__ volatile("");
}

__attribute__((noinline)) static void plain(int depth)
{
	if (depth > 0)
		plain(depth - 1);
	else
		for (int i = 0; i < 1000; i++)
			sample();
	__asm__ volatile("");
}

static struct incstack_stats stats_now(void)
{
	struct incstack_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_stack_stats(current, &stats), 0);
	return stats;
}

/* How many frames are walked for thousand samples a hundred frames deep. */
static uint64_t work(void)
{
	retrieve();
	uint64_t walked = stats_now().walked;
	plain(100);
	walked = stats_now().walked - walked;
	retrieve();
	return walked;
}

static void exits(int count)
{
	for (int i = 0; i < count; i++) {
		exit_once();
		if (i % RESERVE_EVERY == 0)
			retrieve();
	}
}

/* Most tests use mode patch with a fixed distance, so that the work is fixed, too. */
static void open_runtime(void)
{
	traced_open(3, INCSTACK_MODE_PATCH);
	current = traced_stack;
}

START_TEST(a_million_exits)
{
	open_runtime();
	work();
	uint64_t before = work();
	exits(EXITS);
	struct incstack_stats stats = stats_now();
	ck_assert_uint_gt(stats.stale, EXITS / 2);
	ck_assert_uint_eq(stats.no_thunk, 0);
	ck_assert_uint_eq(stats.pools, 0);
	ck_assert_uint_eq(stats.revived, 0);
	ck_assert_uint_eq(incstack__stack_broken(traced_stack), 0);
	ck_assert_uint_eq(stats.mode, INCSTACK_MODE_PATCH);
	uint64_t after = work();
	ck_assert_uint_le(after, before + before / 10);
	traced_close();
}
END_TEST

/* Ends with vanished barriers, but so few that nothing was reclaimed before. */
static void *run_thread(void *nothing)
{
	ck_assert_int_eq(incstack_stack_create_native(traced_runtime, &current), 0);
	retrieve();
	exits(5);
	plain(3);
	ck_assert_uint_eq(stats_now().no_thunk, 0);
	ck_assert_uint_eq(stats_now().pools, 0);
	ck_assert_uint_gt(stats_now().stale, 0);
	incstack_stack_destroy(current);
	return nothing;
}

START_TEST(threads_that_ended)
{
	open_runtime();
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;
		ck_assert_int_eq(pthread_create(&thread, NULL, run_thread, NULL), 0);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
	}
	current = traced_stack;
	traced_close();
}
END_TEST

/* The state of a fiber's stack is given up with the memory; its barriers are still there. */
START_TEST(fibers_that_were_abandoned)
{
	open_runtime();
	uintptr_t low, high;
	ck_assert_int_eq(incstack_native_stack_range(&low, &high), 0);
	for (int i = 0; i < FIBERS; i++) {
		ck_assert_int_eq(incstack_stack_create(traced_runtime, low, high, &current), 0);
		exits(2);
		ck_assert_uint_eq(stats_now().no_thunk, 0);
		ck_assert_uint_eq(stats_now().pools, 0);
		if (i % 2) {
			exit_once();
			ck_assert_int_eq(incstack_stack_forget(current), 0);
		}
		exit_once();
		incstack_stack_abandon(current);
	}
	current = traced_stack;
	traced_close();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("unannounced");
	TCase *t = tcase_create("unannounced");

	tcase_add_test(t, a_million_exits);
	tcase_add_test(t, threads_that_ended);
	tcase_add_test(t, fibers_that_were_abandoned);
	suite_add_tcase(s, t);
	return run_suite(s);
}
