/* SPDX-License-Identifier: MIT
 *
 * Tests C++ exceptions, pthread_exit and pthread_cancel through patched frames: no cleanup is
 * skipped, nothing leaks, and traces that were open are complete afterwards.
 */
#include "real_stack.h"
#include "run_suite.h"

#include <cstdlib>
#include <exception>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static int destroyed, alive;
struct guard {
	~guard()
	{
		destroyed++;
	}
};
struct error {
	int value;
	explicit error(int v) : value(v)
	{
		alive++;
	}
	error(const error &e) : value(e.value)
	{
		alive++;
	}
	~error()
	{
		alive--;
	}
};

static NOINLINE int thrower(int depth, int value)
{
	guard g;
	take_sample();
	if (depth == 0)
		throw error(value);
	int result = thrower(depth - 1, value);
	__asm__ volatile("" ::"r"(&g) : "memory");
	return result + 1;
}

static NOINLINE int catcher(int depth, int value)
{
	try {
		return thrower(depth, value);
	} catch (const error &e) {
		take_sample();
		return e.value;
	}
}

static NOINLINE int rethrower(int depth, int value)
{
	try {
		thrower(depth, value);
	} catch (...) {
		take_sample();
		throw;
	}
	return -1;
}

static struct incstack_tree *retrieved()
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	return tree;
}

static void setup(unsigned distance)
{
	open_runtime(distance);
	s = open_stack();
	ck_assert_int_eq(incstack_stack_reserve(s, 1 << 20), 0);
	samples = 0;
	destroyed = alive = 0;
}

static const unsigned distances[] = {0, 1, 2, 3, 6};

/* The handler at every distance, the direct caller of a patched frame included. */
START_TEST(throw_and_catch)
{
	setup(distances[_i]);
	for (int depth = 0; depth < 12; depth++) {
		destroyed = 0;
		ck_assert_int_eq(catcher(depth, depth), depth);
		ck_assert_int_eq(destroyed, depth + 1);
	}
	struct incstack_tree *tree = retrieved();
	ck_assert_uint_eq(tree->truncated, 0);
	ck_assert_uint_eq(tree->count, 12 * 13 / 2 + 12);
	struct incstack_stats stats = stats_of_stack();
	ck_assert_uint_eq(stats.stale, 0);
	if (distances[_i] < 6)
		ck_assert_uint_gt(stats.unwound, 0);
	incstack_tree_release(tree);
	close_all();
}
END_TEST

START_TEST(nothing_leaks)
{
	setup(distances[_i]);
	for (int i = 0; i < 1000; i++) {
		int caught = 0;
		try {
			rethrower(3, i);
		} catch (const error &e) {
			caught = e.value;
		}
		ck_assert_int_eq(caught, i);
		ck_assert_int_eq(alive, 0);
		ck_assert_int_eq(incstack_stack_reserve(s, 4096), 0);
	}
	struct incstack_tree *tree = retrieved();
	ck_assert_uint_eq(tree->truncated, 0);
	ck_assert_uint_eq(tree->count, 5000);
	incstack_tree_release(tree);
	close_all();
}
END_TEST

static NOINLINE int uncaught(int depth)
{
	take_sample();
	return depth ? uncaught(depth - 1) + 1 : thrower(0, 1);
}

[[noreturn]] static void at_terminate()
{
	_exit(destroyed == 0 ? 77 : 1); /* phase 1 found no handler: nothing was unwound */
}

START_TEST(uncaught_sees_the_throw)
{
	setup(1);
	std::set_terminate(at_terminate);
	uncaught(5);
}
END_TEST

struct sampling_guard {
	~sampling_guard()
	{
		take_sample();
	}
};

static NOINLINE int sampled_unwinding(int depth)
{
	sampling_guard g;
	if (depth == 0)
		throw error(7);
	int result = sampled_unwinding(depth - 1);
	__asm__ volatile("" ::"r"(&g) : "memory");
	return result + 1;
}

/* Samples between the unwinder's phases: barriers appear in front of a handler
 * that was already chosen. */
START_TEST(samples_in_destructors)
{
	setup(distances[_i]);
	for (int depth = 0; depth < 12; depth++) {
		int caught = 0;
		try {
			sampled_unwinding(depth);
		} catch (const error &e) {
			caught = e.value;
		}
		ck_assert_int_eq(caught, 7);
		ck_assert_int_eq(alive, 0);
	}
	struct incstack_tree *tree = retrieved();
	ck_assert_uint_eq(tree->truncated, 0);
	ck_assert_uint_eq(tree->count, 12 * 13 / 2);
	incstack_tree_release(tree);
	close_all();
}
END_TEST

static bool cancelled;
static int cleanups;
#pragma GCC diagnostic ignored "-Winfinite-recursion" /* it ends by leaving the thread */
static NOINLINE int exit_below(int depth)
{
	guard g;
	take_sample();
	if (depth == 0) {
		if (!cancelled)
			pthread_exit(nullptr);
		pthread_cancel(pthread_self());
		pthread_testcancel();
	}
	int result = exit_below(depth - 1);
	__asm__ volatile("" ::"r"(&g) : "memory");
	return result + 1;
}

static void *thread_main(void *)
{
	s = open_stack();
	pthread_cleanup_push([](void *) { cleanups++; }, nullptr);
	exit_below(5);
	pthread_cleanup_pop(0);
	return nullptr;
}

START_TEST(thread_exit_runs_all)
{
	open_runtime(1);
	cancelled = _i;
	destroyed = cleanups = 0;
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, nullptr, thread_main, nullptr), 0);
	ck_assert_int_eq(pthread_join(thread, nullptr), 0);
	ck_assert_int_eq(destroyed, 6);
	ck_assert_int_eq(cleanups, 1);
	incstack_stack_abandon(s);
	incstack_runtime_destroy(rt);
}
END_TEST

int main()
{
	Suite *suite = suite_create("exceptions");
	TCase *tc = tcase_create("through patched frames");
	tcase_add_loop_test(tc, throw_and_catch, 0, 5);
	tcase_add_loop_test(tc, nothing_leaks, 0, 5);
	tcase_add_loop_test(tc, samples_in_destructors, 0, 5);
	tcase_add_exit_test(tc, uncaught_sees_the_throw, 77);
	tcase_add_loop_test(tc, thread_exit_runs_all, 0, 2);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
