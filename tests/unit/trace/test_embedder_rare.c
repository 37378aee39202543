/* SPDX-License-Identifier: MIT
 *
 * Tests rare cases of stacks that only the embedder can walk: abandoned stacks, exact positions,
 * and no room for a trace.
 */
#include "heap_frames.h"
#include "run_suite.h"

/* The embedder's stack is gone: its frames are not disarmed, and its thunks serve other stacks. */
START_TEST(abandoned)
{
	setup_with((struct incstack_options){.distance = 1, .thunk_limit = 2});
	for (int i = 0; i < 4; i++) {
		while (depth < 12)
			call();
		sample();
		return_to_caller();
		sample();
		ck_assert_uint_eq(armed_now, 1);
		for (struct node *n = top; n; n = n->caller)
			n->armed = false;
		armed_now = 0;
		record_count = 0;
		ck_assert_uint_eq(stats_of_stack().no_thunk, 0);
		incstack_stack_abandon(s);
		ck_assert_int_eq(incstack_stack_create_embedder(rt, &walker, &rt, &s), 0);
		ck_assert_int_eq(incstack_stack_reserve(s, 1 << 20), 0);
	}
	teardown();
}
END_TEST

/* What the embedder reports about a frame is in its trace. */
START_TEST(exact_positions)
{
	struct incstack_tree *tree;
	all_exact = true;
	setup(3, INCSTACK_MODE_PATCH);
	while (depth < 10)
		call();
	sample();
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	const struct incstack_frame_object *o = tree->traces->top->parent;
	for (; o; o = o->parent)
		ck_assert(o->flags & (INCSTACK_OBJECT_EXACT | INCSTACK_OBJECT_VIRTUAL));
	incstack_tree_release(tree);
	record_count = 0;
	all_exact = false;
	teardown();
}
END_TEST

/* No room for the frames of a trace, wherever it ends: what is missing is marked. After the next
 * reserve nothing is missing. */
START_TEST(no_room)
{
	struct incstack_tree *tree;
	unsigned refused = 0, taken = 0;
	setup_with(
		(struct incstack_options){.distance = distances[_i % 6],
					  .mode = _i / 6 ? INCSTACK_MODE_FULL : INCSTACK_MODE_PATCH,
					  .chunk_bytes = 512});
	ck_assert_int_eq(incstack_stack_reserve(s, 1 << 14), 0);
	while (depth < 40)
		call();
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	incstack_tree_release(tree);
	no_memory = true;
	for (int i = 0; i < 400; i++) {
		struct incstack_top t = {.sp = (uintptr_t)top, .flags = INCSTACK_TOP_DECODE_NOW};
		const int error = incstack_stack_sample(s, 0, 1, &t);
		ck_assert(error == 0 || error == INCSTACK_EROOM);
		taken += error == 0;
		refused += error != 0;
		ck_assert_int_eq(incstack__stack_verify(s), 0);
		if (depth > 20)
			return_to_caller();
		else
			call();
	}
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_gt(taken, 0);
	ck_assert_uint_eq(stats_of_stack().lost_limit, refused);
	ck_assert_uint_eq(stats_of_stack().samples, taken);
	no_memory = false;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->count, taken);
	ck_assert_uint_eq(tree->truncated, stats_of_stack().truncated);
	ck_assert(_i / 6 == 0 || tree->truncated == 0); /* each walk goes to the base */
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		for (const struct incstack_frame_object *o = t->top; o; o = o->parent)
			ck_assert(o->parent ||
				  o->flags & (INCSTACK_OBJECT_TRUNCATED | INCSTACK_OBJECT_BASE));
	incstack_tree_release(tree);
	ck_assert_int_eq(incstack_stack_reserve(s, 1 << 18), 0);
	const uint64_t truncated = stats_of_stack().truncated;
	sample();
	ck_assert_uint_eq(retrieve(), 0);
	ck_assert_uint_eq(stats_of_stack().truncated, truncated);
	teardown();
}
END_TEST

/* One sample of 20 frames after `fillers` samples of one. Returns whether there was room. */
static bool last_sample(unsigned distance, unsigned fillers)
{
	struct incstack_top t = {.flags = INCSTACK_TOP_DECODE_NOW};
	struct incstack_tree *tree;
	setup_with((struct incstack_options){.distance = distance, .chunk_bytes = 512});
	ck_assert_int_eq(incstack_stack_reserve(s, 512), 0);
	no_memory = true;
	t.sp = (uintptr_t)top;
	for (unsigned i = 0; i < fillers; i++)
		ck_assert(incstack_stack_sample(s, 0, 1, &t) == 0 || i + 1 == fillers);
	while (depth < 20)
		call();
	t.sp = (uintptr_t)top;
	const int error = incstack_stack_sample(s, 0, 1, &t);
	ck_assert(error == 0 || error == INCSTACK_EROOM);
	ck_assert_int_eq(incstack__stack_verify(s), 0);
	ck_assert_uint_eq(stats_of_stack().planted, armed_now);
	no_memory = false;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	incstack_tree_release(tree);
	teardown();
	ck_assert_uint_eq(armed_now, 0);
	return error == 0;
}

/* Room for all frames up to the one where a barrier is due, but not for that one: the sample is
 * refused, and leaves no barrier. */
START_TEST(no_room_for_a_barrier)
{
	unsigned fillers = 0;
	while (last_sample((unsigned)_i + 1, fillers))
		fillers++;
	ck_assert_uint_gt(fillers, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("embedder's barrier, rare");
	TCase *tc = tcase_create("frames on the heap");
	const int count = sizeof(distances) / sizeof(distances[0]);
	tcase_add_test(tc, abandoned);
	tcase_add_test(tc, exact_positions);
	tcase_add_loop_test(tc, no_room, 0, 2 * count);
	tcase_add_loop_test(tc, no_room_for_a_barrier, 0, 8);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
