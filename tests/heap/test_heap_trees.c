/* SPDX-License-Identifier: MIT
 *
 * Tests the memory of traces of frames on the heap: when it stays, and when it is used again.
 */
#include "by_hand.h"

/* Trees keep their objects while the stack copies the known ones again and again. */
START_TEST(trees_keep_their_objects)
{
	enum { TREES = 500 };
	static const struct incstack_heap_tree *trees[TREES];
	hand_open((uint32_t)_i, 0);
	hand_calls(50);
	for (unsigned i = 0; i < TREES; i++) {
		hand.frames[hand.top].position = i;
		hand_sample(i);
		trees[i] = hand_retrieve();
		if (i % 7 == 6)
			ck_assert_int_eq(hand_return(), 0);
		if (i % 5 == 4)
			hand_call(i);
	}
	ck_assert_uint_gt(hand_stats().copies, 1);
	incstack_heap_stack_destroy(hand.stack);
	hand.stack = NULL;
	for (unsigned i = 0; i < TREES; i++) {
		const struct incstack_heap_trace *t = trees[i * 3 % TREES]->traces;
		ck_assert_uint_eq(t->id, i * 3 % TREES);
		ck_assert_uint_eq(t->top->frame.position, i * 3 % TREES);
		ck_assert_uint_eq(hand_last(t->top)->frame.flags, INCSTACK_HEAP_BASE);
		incstack_heap_tree_release(trees[i * 3 % TREES], NULL);
	}
	hand_close();
}
END_TEST

START_TEST(a_trace_at_once_is_complete_and_needs_no_memory_after_a_while)
{
	hand_open((uint32_t)_i, 0);
	hand_calls(300);
	for (unsigned i = 0; i < 600; i++)
		ck_assert_uint_eq(hand_length(hand_trace()), 300);
	const size_t bytes = hand.allocated;
	for (unsigned i = 0; i < 600; i++)
		ck_assert_uint_eq(hand_length(hand_trace()), 300);
	ck_assert_uint_eq(hand.allocated, bytes);
	ck_assert_uint_eq(hand_stats().samples, 1200);
	hand_close();
}
END_TEST

/* Releases the tree in one of the two ways. */
static void release(const struct incstack_heap_tree *tree, bool through_stack)
{
	if (through_stack)
		ck_assert_int_eq(incstack_heap_tree_release(tree, hand.stack), 0);
	else
		incstack_heap_tree_release(tree, NULL);
}

START_TEST(the_memory_of_released_trees_is_used_again)
{
	static const uint32_t modes[] = {INCSTACK_HEAP_BARRIER, INCSTACK_HEAP_FULL};
	size_t bytes = 0;
	hand_open(modes[_i / 2], 2);
	hand_calls(50);
	for (unsigned i = 0; i < 2000; i++) {
		for (unsigned k = 0; k < 2; k++) {
			hand.frames[hand.top].position = i + k;
			hand_sample(k);
		}
		const struct incstack_heap_tree *tree = hand_retrieve();
		ck_assert_uint_eq(tree->traces->top->frame.position, i);
		ck_assert_uint_eq(tree->traces->next->top->frame.position, i + 1);
		ck_assert_uint_eq(hand_length(tree->traces->top), 50);
		release(tree, _i % 2);
		if (i == 9)
			bytes = hand.allocated;
	}
	ck_assert_uint_eq(hand.allocated, bytes);
	ck_assert_uint_eq(hand_stats().copies, 0);
	hand_close();
}
END_TEST

/* Traces at once need no more memory while others wait for their retrieve, or a tree for its release. */
START_TEST(a_trace_at_once_leaves_nothing_behind)
{
	static const uint32_t modes[] = {INCSTACK_HEAP_BARRIER, INCSTACK_HEAP_FULL};
	const struct incstack_heap_tree *tree = NULL;
	size_t bytes = 0;
	hand_open(modes[_i / 2], 2);
	hand_calls(30);
	hand_sample(1);
	if (_i % 2)
		tree = hand_retrieve();
	for (unsigned i = 0; i < 2000; i++) {
		hand.frames[hand.top].position = 1 + i;
		ck_assert_uint_eq(hand_trace()->frame.position, 1 + i);
		if (i == 9)
			bytes = hand.allocated;
	}
	ck_assert_uint_eq(hand.allocated, bytes);
	if (!tree)
		tree = hand_retrieve();
	ck_assert_uint_eq(tree->traces->top->frame.position, 0);
	ck_assert_uint_eq(hand_length(tree->traces->top), 30);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* The stack of the tree, another one, and one that has left the tree's memory. */
START_TEST(a_tree_is_released_through_a_stack)
{
	struct incstack_heap_stack *other;
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	ck_assert_int_eq(incstack_heap_stack_create(hand.heap, &hand.stack, &other), 0);
	const size_t before = hand.allocated;
	hand_calls(5);
	hand_sample(1);
	const struct incstack_heap_tree *one = hand_retrieve(), *two = hand_retrieve();
	hand_sample(2);
	while (hand.top)
		ck_assert_int_eq(hand_return(), 0);
	const struct incstack_heap_tree *three = hand_retrieve();
	ck_assert_int_eq(incstack_heap_tree_release(NULL, hand.stack), 0);
	ck_assert_int_eq(incstack_heap_tree_release(one, other), 0);
	ck_assert_int_eq(incstack_heap_tree_release(two, hand.stack), 0);
	ck_assert_uint_eq(hand_length(three->traces->top), 5);
	ck_assert_int_eq(incstack_heap_tree_release(three, hand.stack), 0);
	ck_assert_uint_eq(hand.allocated, before);
	hand_close();
}
END_TEST

/* A return that was not reported is served by the next sample, which sets a mark between others. */
START_TEST(what_a_served_return_made_known_stays)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(4);
	hand_sample(1);
	incstack_heap_tree_release(hand_retrieve(), NULL);
	hand_calls(2);
	hand_sample(2);
	hand.top--;
	hand_sample(3);
	ck_assert_uint_eq(hand_marks(), 34);
	ck_assert_uint_eq(hand_stats().stale, 1);
	incstack_heap_tree_release(hand_retrieve(), NULL);
	for (unsigned i = 4; i < 7; i++) {
		hand_sample(i);
		const struct incstack_heap_tree *tree = hand_retrieve();
		ck_assert_uint_eq(tree->traces->old->frame.name, 4);
		ck_assert_uint_eq(hand_length(tree->traces->top), 5);
		incstack_heap_tree_release(tree, NULL);
	}
	ck_assert_uint_eq(hand_stats().stale, 1);
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trees of frames on the heap");
	TCase *c = tcase_create("memory");
	const int modes = INCSTACK_HEAP_FULL + 1;
	tcase_add_loop_test(c, trees_keep_their_objects, 0, modes);
	tcase_add_loop_test(c, a_trace_at_once_is_complete_and_needs_no_memory_after_a_while, 0,
			    modes);
	tcase_add_loop_test(c, the_memory_of_released_trees_is_used_again, 0, 4);
	tcase_add_loop_test(c, a_trace_at_once_leaves_nothing_behind, 0, 4);
	tcase_add_test(c, a_tree_is_released_through_a_stack);
	tcase_add_test(c, what_a_served_return_made_known_stays);
	suite_add_tcase(suite, c);
	return run_suite(suite);
}
