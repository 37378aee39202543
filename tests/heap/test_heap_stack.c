/* SPDX-License-Identifier: MIT
 *
 * Tests tracing of frames on the heap, event by event: which frames get a mark, which are walked, which
 * objects are shared.
 */
#include "by_hand.h"

START_TEST(a_sample_marks_the_caller_at_the_distance)
{
	static const unsigned marks[] = {4, 3, 2, 0, 0, 0}; /* the outermost frame needs none */
	hand_open(INCSTACK_HEAP_BARRIER, (uint32_t)_i + 1);
	hand_calls(5);
	hand_sample(1);
	ck_assert_uint_eq(hand_marks(), marks[_i]);
	ck_assert_uint_eq(hand_stats().marks, marks[_i] != 0);
	ck_assert_uint_eq(hand_stats().walked, _i < 3 ? (unsigned)_i + 2 : 5);
	hand_close();
}
END_TEST

START_TEST(a_frame_that_refuses_leaves_the_mark_to_its_caller)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(5);
	hand.frames[4].refuses = hand.frames[3].refuses = true;
	hand_sample(1);
	ck_assert_uint_eq(hand_marks(), 2);
	ck_assert_uint_eq(hand_stats().refused, 2);
	incstack_heap_tree_release(hand_retrieve(), NULL);
	hand_close();
}
END_TEST

START_TEST(a_sample_stops_at_the_youngest_mark)
{
	const struct incstack_heap_tree *tree;
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(5);
	hand_sample(1);
	hand_sample(2);
	ck_assert_uint_eq(hand_stats().walked, 4);
	ck_assert_uint_eq(hand_stats().shared, 1);
	tree = hand_retrieve();
	ck_assert_uint_eq(tree->count, 2);
	const struct incstack_heap_trace *first = tree->traces, *second = first->next;
	ck_assert_uint_eq(first->id, 1);
	ck_assert_uint_eq(second->id, 2);
	ck_assert_ptr_null(second->next);
	ck_assert_ptr_null(first->old);
	ck_assert_ptr_ne(first->top, second->top);
	ck_assert_ptr_eq(first->top->parent, second->top->parent);
	ck_assert_ptr_eq(second->old, first->top->parent);
	ck_assert_uint_eq(hand_length(second->top), 5);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* The position of a caller is that of its call, although it runs on before the traces are retrieved. */
START_TEST(a_return_captures_the_caller_as_it_was_at_its_call)
{
	const struct incstack_heap_tree *tree;
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(4);
	for (uintptr_t name = 1; name <= 4; name++)
		hand.frames[name].position = (uint32_t)name;
	hand_sample(1);
	for (unsigned left = 3; left; left--) {
		ck_assert_int_eq(hand_return(), 0);
		ck_assert_uint_eq(hand_marks(), left == 3 ? 2 : 0);
		hand.frames[hand.top].position = 9;
	}
	ck_assert_uint_eq(hand_stats().returns, 2);
	tree = hand_retrieve();
	ck_assert_uint_eq(hand_positions(tree->traces->top), 4321);
	ck_assert_uint_eq(hand_last(tree->traces->top)->frame.flags, INCSTACK_HEAP_BASE);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* The callers are known: the mark moves without a walk. */
START_TEST(a_return_to_known_callers_moves_the_mark)
{
	hand_open(INCSTACK_HEAP_BARRIER, (uint32_t)_i);
	hand_calls(9);
	hand_sample(1);
	incstack_heap_tree_release(hand_retrieve(), NULL);
	const uint64_t walked = hand_stats().walked;
	while (hand_marks() == 9 - (unsigned)_i)
		ck_assert_int_eq(hand_return(), 0);
	ck_assert_uint_eq(hand.top, 9 - (unsigned)_i);
	ck_assert_uint_eq(hand_marks(), 9 - 2 * (unsigned)_i);
	ck_assert_uint_eq(hand_stats().walked, walked);
	hand_close();
}
END_TEST

START_TEST(a_trace_has_what_walk_said)
{
	const struct incstack_heap_object *o;
	hand_open((uint32_t)_i, 1);
	hand_calls(2);
	hand.frames[2].function = UINT64_MAX;
	hand.frames[2].position = UINT32_MAX;
	hand.frames[2].kind = UINT16_MAX;
	hand.frames[2].flags = UINT16_MAX & ~INCSTACK_HEAP_MARKED;
	for (int again = 0; again < 2; again++) {
		o = hand_trace();
		ck_assert_uint_eq(o->frame.function, UINT64_MAX);
		ck_assert_uint_eq(o->frame.position, UINT32_MAX);
		ck_assert_uint_eq(o->frame.kind, UINT16_MAX);
		ck_assert_uint_eq(o->frame.flags, INCSTACK_HEAP_OWN);
		ck_assert_uint_eq(o->frame.name, 2);
		ck_assert_uint_eq(o->parent->frame.flags, INCSTACK_HEAP_BASE);
		ck_assert_ptr_null(o->parent->parent);
	}
	hand_close();
}
END_TEST

START_TEST(a_retrieve_leaves_the_marks_and_the_known_callers)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(6);
	hand_sample(1);
	const struct incstack_heap_tree *one = hand_retrieve();
	hand_sample(2);
	const uint64_t walked = hand_stats().walked;
	const struct incstack_heap_tree *two = hand_retrieve(), *none = hand_retrieve();
	ck_assert_uint_eq(hand_stats().walked, walked);
	ck_assert_uint_eq(hand_marks(), 5);
	ck_assert_ptr_eq(one->traces->top->parent, two->traces->top->parent);
	ck_assert_uint_eq(none->count, 0);
	ck_assert_ptr_null(none->traces);
	incstack_heap_tree_release(one, NULL);
	incstack_heap_tree_release(none, NULL);
	ck_assert_uint_eq(hand_length(two->traces->top), 6);
	incstack_heap_tree_release(two, NULL);
	hand_close();
}
END_TEST

START_TEST(samples_and_traces_at_once_do_not_disturb_each_other)
{
	hand_open((uint32_t)_i, 2);
	hand_calls(20);
	for (unsigned i = 0; i < 9; i++) {
		hand.frames[hand.top].position = i;
		hand_sample(i);
		ck_assert_uint_eq(hand_trace()->frame.position, i);
		hand.frames[hand.top].position = 9;
		ck_assert_uint_eq(hand_trace()->frame.position, 9);
	}
	const struct incstack_heap_tree *tree = hand_retrieve();
	for (const struct incstack_heap_trace *t = tree->traces; t; t = t->next) {
		ck_assert_uint_eq(t->top->frame.position, t->id);
		ck_assert_uint_eq(hand_length(t->top), 20);
	}
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

START_TEST(an_error_is_reported_in_one_call)
{
	const struct incstack_heap_tree *tree;
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(9);
	hand_sample(1);
	hand_call(10);
	hand_sample(2);
	ck_assert_uint_eq(hand_marks(), 89);
	ck_assert_int_eq(incstack_heap_stack_unwinding_to(hand.stack, hand.top, (uintptr_t)_i), 0);
	ck_assert_uint_le(hand_stats().walked, 4 + 2 * 9);
	ck_assert_uint_eq(hand_marks(), _i == 2 ? 0 : (unsigned)_i - 1);
	hand.top = (uintptr_t)_i;
	hand.frames[_i].position = 7;
	tree = hand_retrieve();
	ck_assert_uint_eq(hand_length(tree->traces->top), 9);
	ck_assert_uint_eq(hand_length(tree->traces->next->top), 10);
	ck_assert_uint_eq(hand_positions(tree->traces->top), 0);
	ck_assert_uint_eq(hand_stats().stale, 0);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* The names of the marked frames are enough for an error. */
START_TEST(marked_names_the_youngest_first)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	ck_assert_uint_eq(incstack_heap_stack_marked(hand.stack, 0), 0);
	hand_calls(1);
	for (unsigned i = 1; i < 5; i++) {
		hand_calls(2);
		hand_sample(i);
	}
	ck_assert_uint_eq(hand_marks(), 2468);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(incstack_heap_stack_marked(hand.stack, i), 8 - 2 * i);
	ck_assert_uint_eq(incstack_heap_stack_marked(hand.stack, 4), 0);
	ck_assert_uint_eq(incstack_heap_stack_marked(NULL, 0), 0);
	hand_close();
}
END_TEST

START_TEST(frames_have_new_names_after_a_lift)
{
	hand_open((uint32_t)_i, 1);
	hand_calls(6);
	ck_assert_uint_eq(hand_length(hand_trace()), 6);
	ck_assert_int_eq(incstack_heap_stack_lift(hand.stack, hand.top), 0);
	/* All frames move by one; the new frame 1 is a copy of nothing. */
	for (uintptr_t name = 6; name; name--)
		hand.frames[name + 1] = hand.frames[name];
	hand.top = 7;
	hand.circle = 2; /* the outermost one */
	const uint64_t walked = hand_stats().walked;
	const struct incstack_heap_object *o = hand_trace();
	ck_assert_uint_eq(hand_length(o), 6);
	ck_assert_uint_eq(o->frame.name, 7);
	ck_assert_uint_eq(hand_last(o)->frame.name, 2);
	ck_assert_uint_eq(hand_stats().walked, walked + 6);
	hand_close();
}
END_TEST

START_TEST(lift_clears_all_marks)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(5);
	hand_sample(1);
	hand_calls(2);
	hand_sample(2);
	ck_assert_uint_eq(hand_marks(), 46);
	ck_assert_int_eq(incstack_heap_stack_lift(hand.stack, hand.top), 0);
	ck_assert_uint_eq(hand_marks(), 0);
	ck_assert_uint_eq(hand_stats().stale, 0);
	hand_sample(3);
	ck_assert_uint_eq(hand_marks(), 6);
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_uint_eq(hand_length(tree->traces->top), 5);
	ck_assert_ptr_null(tree->traces->next->next->old);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* A collected coroutine: no frame is touched any more. */
START_TEST(a_forgotten_stack_keeps_what_it_has)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(5);
	hand_sample(1);
	hand.top = 0;
	ck_assert_int_eq(incstack_heap_stack_lift(hand.stack, 0), 0);
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_uint_eq(hand_length(tree->traces->top), 2);
	ck_assert_uint_eq(tree->traces->top->parent->frame.flags, INCSTACK_HEAP_TRUNCATED);
	ck_assert_uint_eq(hand_stats().truncated, 1);
	ck_assert_uint_eq(hand_stats().stale, 0);
	incstack_heap_tree_release(tree, NULL);
	hand_calls(3);
	ck_assert_uint_eq(hand_length(hand_trace()), 3);
	hand_close();
}
END_TEST

/* VALIDATE shares the oldest frames that are all equal; the top is always new. */
START_TEST(validate_compares_from_the_base)
{
	hand_open(INCSTACK_HEAP_VALIDATE, 0);
	hand_calls(6);
	hand_sample(1); /* 1 2 3 4 5 6 */
	hand_sample(2); /* the same */
	hand.frames[4].position = 1;
	hand_sample(3); /* 4 has changed */
	hand.top = 5;
	hand_sample(4); /* a frame less */
	hand_calls(3);
	hand_sample(5); /* more frames */
	hand.top = 2;
	hand_sample(6);
	ck_assert_uint_eq(hand_marks(), 0);
	const struct incstack_heap_tree *tree = hand_retrieve();
	static const uintptr_t old[] = {0, 5, 3, 4, 5, 1}, length[] = {6, 6, 6, 5, 8, 2};
	for (const struct incstack_heap_trace *t = tree->traces; t; t = t->next) {
		ck_assert_uint_eq(t->old ? t->old->frame.name : 0, old[t->id - 1]);
		ck_assert_uint_eq(hand_length(t->top), length[t->id - 1]);
	}
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

START_TEST(full_shares_nothing)
{
	hand_open(INCSTACK_HEAP_FULL, 0);
	hand_calls(4);
	hand_sample(1);
	hand_sample(2);
	ck_assert_uint_eq(hand_stats().shared, 0);
	ck_assert_uint_eq(hand_stats().walked, 8);
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_ptr_null(tree->traces->next->old);
	ck_assert_ptr_ne(tree->traces->top->parent, tree->traces->next->top->parent);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

START_TEST(the_distance_adapts)
{
	hand_open(INCSTACK_HEAP_BARRIER, 0);
	hand_calls(200);
	for (unsigned i = 0; i < 1000; i++) { /* 10 frames return between two samples */
		hand_trace();
		for (unsigned k = 0; k < 10; k++)
			ck_assert_int_eq(hand_return(), 0);
		hand_calls(10);
	}
	/* A mark costs about sixteen steps. */
	const struct incstack_heap_stats stats = hand_stats();
	ck_assert_uint_gt(stats.distance, 4);
	ck_assert_uint_lt((stats.walked + 16 * stats.returns) / stats.samples, 30);
	for (unsigned i = 0; i < 5000; i++) /* none returns */
		hand_trace();
	ck_assert_uint_eq(hand_stats().distance, 1);
	hand_close();
}
END_TEST

START_TEST(a_distance_that_was_chosen_stays)
{
	hand_open(INCSTACK_HEAP_BARRIER, 5);
	hand_calls(20);
	for (unsigned i = 0; i < 2000;
	     i++) { /* first no mark is hit, then one before each sample */
		hand_trace();
		for (int k = 0; i >= 1000 && k < 5; k++)
			HAND_REQUIRE(hand_return() == 0);
		hand_calls(i >= 1000 ? 5 : 0);
		HAND_REQUIRE(hand_stats().distance == 5);
	}
	hand_close();
}
END_TEST

/* As many frames return before each sample. The distance stays where no mark is hit, and a smaller one is
 * tried ever less often. */
START_TEST(marks_are_rarely_hit_after_a_while)
{
	struct incstack_heap_stats then = {0};
	hand_open(INCSTACK_HEAP_BARRIER, 0);
	hand_calls(200);
	for (unsigned i = 0; i < 20000; i++) {
		hand_trace();
		for (int k = 0; k < _i; k++)
			HAND_REQUIRE(hand_return() == 0);
		hand_calls((unsigned)_i);
		if (i == 9999)
			then = hand_stats();
	}
	const struct incstack_heap_stats now = hand_stats();
	ck_assert_uint_lt(now.returns - then.returns, 100);
	ck_assert_uint_lt(now.walked - then.walked, 10000 * (unsigned)(_i + 2) + 1000);
	hand_close();
}
END_TEST

/* A few frames return and are called before each sample; before one in ten, many are. The larger distances would save
 * few hits, so a sample must not walk that far. */
START_TEST(the_distance_is_small_if_returns_are_many_but_rare)
{
	uint32_t depth = 150, random = 1;
	hand_open(INCSTACK_HEAP_BARRIER, 0);
	hand_calls(depth);
	for (unsigned i = 0; i < 20000; i++) {
		random = random * 1103515245 + 12345;
		const uint32_t number = random >> 16;
		uint32_t to = i % 10 ? depth + number % 5 - 2 : 7 + number % 294;
		to = to < 7 ? 7 : to > 300 ? 300 : to;
		hand_trace();
		for (; depth > to; depth--)
			HAND_REQUIRE(hand_return() == 0);
		hand_calls(to - depth);
		depth = to;
	}
	const struct incstack_heap_stats stats = hand_stats();
	ck_assert_uint_lt((stats.walked + 16 * stats.returns) / stats.samples, 40);
	hand_close();
}
END_TEST

static TCase *tests(void)
{
	TCase *c = tcase_create("events");
	const int modes = INCSTACK_HEAP_FULL + 1;
	tcase_add_loop_test(c, a_sample_marks_the_caller_at_the_distance, 0, 6);
	tcase_add_test(c, a_frame_that_refuses_leaves_the_mark_to_its_caller);
	tcase_add_test(c, a_sample_stops_at_the_youngest_mark);
	tcase_add_test(c, a_return_captures_the_caller_as_it_was_at_its_call);
	tcase_add_loop_test(c, a_return_to_known_callers_moves_the_mark, 1, 4);
	tcase_add_loop_test(c, a_trace_has_what_walk_said, 0, modes);
	tcase_add_test(c, a_retrieve_leaves_the_marks_and_the_known_callers);
	tcase_add_loop_test(c, samples_and_traces_at_once_do_not_disturb_each_other, 0, modes);
	tcase_add_loop_test(c, an_error_is_reported_in_one_call, 2, 10);
	tcase_add_test(c, marked_names_the_youngest_first);
	tcase_add_loop_test(c, frames_have_new_names_after_a_lift, 0, modes);
	tcase_add_test(c, lift_clears_all_marks);
	tcase_add_test(c, a_forgotten_stack_keeps_what_it_has);
	tcase_add_test(c, validate_compares_from_the_base);
	tcase_add_test(c, full_shares_nothing);
	tcase_add_test(c, the_distance_adapts);
	tcase_add_test(c, a_distance_that_was_chosen_stays);
	tcase_add_test(c, the_distance_is_small_if_returns_are_many_but_rare);
	tcase_add_loop_test(c, marks_are_rarely_hit_after_a_while, 0, 9);
	return c;
}

int main(void)
{
	Suite *suite = suite_create("frames on the heap");
	suite_add_tcase(suite, tests());
	return run_suite(suite);
}
