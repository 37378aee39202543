/* SPDX-License-Identifier: MIT
 *
 * Tests stacks that only the embedder can walk, with its own return barrier, in random programs.
 */
#include "heap_frames.h"
#include "run_suite.h"

START_TEST(every_trace_is_right)
{
	setup(distances[_i], INCSTACK_MODE_PATCH);
	ck_assert_uint_eq(stats_of_stack().mode, INCSTACK_MODE_EMBEDDER);
	ck_assert_uint_eq(run(), 0);
	struct incstack_stats stats = stats_of_stack();
	ck_assert_uint_eq(stats.truncated, 0);
	ck_assert_uint_eq(stats.stale, 0);
	ck_assert_uint_eq(stats.planted, arms);
	ck_assert_uint_gt(stats.returns, 0);
	ck_assert_uint_gt(stats.shared, 100);
	teardown();
	ck_assert_uint_eq(armed_now, 0);
}
END_TEST

/* Frames that cannot have a barrier: their callers get it. */
START_TEST(refused_arms)
{
	no_arms = 3;
	setup(distances[_i], INCSTACK_MODE_PATCH);
	ck_assert_uint_eq(run(), 0);
	ck_assert_uint_gt(stats_of_stack().no_thunk, 0);
	ck_assert_uint_gt(stats_of_stack().returns, 0);
	teardown();
	ck_assert_uint_eq(armed_now, 0);
}
END_TEST

/* Frames that vanish unannounced: what was not seen is missing, marked and counted, and no trace
 * continues with a wrong caller. */
START_TEST(unannounced_exits)
{
	careless = true;
	setup(distances[_i], INCSTACK_MODE_PATCH);
	unsigned missing = run();
	struct incstack_stats stats = stats_of_stack();
	ck_assert_int_eq(missing > 0, stats.truncated > 0);
	if (distances[_i] && distances[_i] < 6)
		ck_assert_uint_gt(stats.truncated, 0);
	ck_assert_uint_ge(stats.stale, stats.truncated);
	teardown();
}
END_TEST

/* No announcement, and no sample in between: retrieve asks where the stack ends. */
START_TEST(retrieve_notices_unannounced_exits)
{
	struct incstack_tree *tree;
	tells_youngest = true;
	careless = true;
	setup(distances[_i], INCSTACK_MODE_PATCH);
	const unsigned missing = run();
	ck_assert_int_eq(missing > 0, stats_of_stack().truncated > 0);
	if (distances[_i] && distances[_i] < 6)
		ck_assert_uint_gt(stats_of_stack().truncated, 0);
	for (unsigned left = 90; left <= 90; left -= 45) {
		while (depth < 150)
			call();
		sample();
		while (depth > left)
			pop();
		ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
		ck_assert_uint_eq(tree->count, 1);
		ck_assert_uint_eq(tree->truncated, 1);
		incstack_tree_release(tree);
	}
	ck_assert_uint_eq(depth, 0);
	teardown();
}
END_TEST

/* The walk ends at the second of two functions in one frame, and what it saw until then is
 * handed over, and kept for the next samples. */
START_TEST(callers_unknown)
{
	setup(distances[_i], INCSTACK_MODE_PATCH);
	while (depth < 5)
		call();
	top->inlined = true;
	wall = top;
	while (depth < 20)
		call();
	for (int i = 0; i < 3; i++) {
		sample();
		ck_assert_uint_gt(retrieve(), 0);
		return_to_caller();
	}
	ck_assert_uint_gt(stats_of_stack().truncated, 0);
	wall = NULL;
	teardown();
}
END_TEST

START_TEST(modes_change)
{
	setup(2, INCSTACK_MODE_FULL);
	ck_assert_uint_eq(stats_of_stack().mode, INCSTACK_MODE_FULL);
	for (int i = 0; i < STEPS; i++) {
		step();
		if (i % 500 == 0)
			ck_assert_int_eq(
				incstack_stack_set_mode(s, i % 1000 ? INCSTACK_MODE_FULL
								    : INCSTACK_MODE_EMBEDDER),
				0);
		if (record_count == TRACES)
			ck_assert_uint_eq(retrieve(), 0);
	}
	ck_assert_uint_gt(stats_of_stack().returns, 0);
	ck_assert_int_eq(incstack_stack_set_mode(s, INCSTACK_MODE_FULL), 0);
	ck_assert_uint_eq(armed_now, 0);
	teardown();
}
END_TEST

START_TEST(bad_input)
{
	struct incstack_stack *other;
	struct incstack_top t = {.sp = 0};
	setup(1, INCSTACK_MODE_PATCH);
	ck_assert_int_eq(incstack_stack_create_embedder(NULL, &walker, &rt, &other),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_create_embedder(rt, &walker, &rt, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_create_embedder(rt, NULL, &rt, &other), INCSTACK_EINVAL);
	for (int i = 0; i < 4; i++) {
		struct incstack_stack_walker lacking = walker;
		if (i == 0)
			lacking.caller = NULL;
		else if (i == 1)
			lacking.arm = NULL;
		else if (i == 2)
			lacking.disarm = NULL;
		else
			lacking.size -= sizeof(void *);
		ck_assert_int_eq(incstack_stack_create_embedder(rt, &lacking, &rt, &other),
				 INCSTACK_EINVAL);
	}
	ck_assert_int_eq(incstack_stack_sample(s, 1, 1, &t), INCSTACK_EINVAL);
	t = (struct incstack_top){.sp = (uintptr_t)top, .flags = INCSTACK_TOP_INTERRUPTED};
	ck_assert_int_eq(incstack_stack_sample(s, 1, 1, &t), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_returned(NULL, 1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_returned(s, 1), INCSTACK_ERANGE);
	ck_assert_int_eq(incstack_stack_unwinding_to(s, 8), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_moved(s, 8, 16), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_frame_moved(s, 0, 8), INCSTACK_EINVAL);
	uintptr_t word = 0;
	ck_assert_int_eq(incstack_stack_slot_write(s, &word, 1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_set_mode(s, INCSTACK_MODE_PATCH), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_set_mode(s, INCSTACK_MODE_VALIDATE), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_create(rt, 8, 64, &other), 0);
	ck_assert_int_eq(incstack_stack_returned(other, 8), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_set_mode(other, INCSTACK_MODE_EMBEDDER), INCSTACK_EINVAL);
	incstack_stack_destroy(other);
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("embedder's barrier");
	TCase *tc = tcase_create("frames on the heap");
	const int count = sizeof(distances) / sizeof(distances[0]);
	tcase_add_loop_test(tc, every_trace_is_right, 0, count);
	tcase_add_loop_test(tc, refused_arms, 0, count);
	tcase_add_loop_test(tc, unannounced_exits, 0, count);
	tcase_add_loop_test(tc, retrieve_notices_unannounced_exits, 0, count);
	tcase_add_loop_test(tc, callers_unknown, 0, count);
	tcase_add_test(tc, modes_change);
	tcase_add_test(tc, bad_input);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
