/* SPDX-License-Identifier: MIT
 *
 * Tests frames on the heap with an embedder that does not do what it must, and with calls that are wrong.
 * An error or a counted truncation follows, never a wrong trace.
 */
#include "by_hand.h"

START_TEST(options_are_checked)
{
	struct incstack_heap *heap = NULL;
	const struct incstack_heap_options good = hand_options();
	struct incstack_heap_options bad[11];
	memset(&hand, 0, sizeof(hand));
	for (int i = 0; i < 11; i++)
		bad[i] = good;
	bad[0].size--;
	bad[1].walk = NULL;
	bad[2].mark = NULL;
	bad[3].memory = NULL;
	bad[4].mode = INCSTACK_HEAP_FULL + 1;
	bad[5].distance = INCSTACK_HEAP_DISTANCE_MAX + 1;
	bad[6].flags = 2;
	bad[7].frame_limit = UINT32_MAX;
	bad[8].memory_limit = 1;
	bad[9].size = 0;
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(incstack_heap_create(&bad[i], &heap),
				 i == 8 ? INCSTACK_ELIMIT : INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_create(NULL, &heap), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_create(&good, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_create(&good, &heap), INCSTACK_ENOMEM);
	ck_assert_ptr_null(heap);
	bad[10].mark = NULL; /* not needed without marks */
	bad[10].mode = INCSTACK_HEAP_FULL;
	hand.fail_after = -1;
	ck_assert_int_eq(incstack_heap_create(&bad[10], &heap), 0);
	incstack_heap_destroy(heap);
}
END_TEST

START_TEST(arguments_are_checked)
{
	struct incstack_heap_stats stats = {.size = sizeof(stats) - 1};
	struct incstack_heap_stack *other;
	const struct incstack_heap_object *o;
	const struct incstack_heap_tree *tree;
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(3);
	ck_assert_int_eq(incstack_heap_stack_create(NULL, NULL, &other), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_create(hand.heap, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_stats(hand.stack, &stats), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_stats(hand.stack, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_stats(NULL, &stats), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_sample(NULL, 1, 0, 0), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_trace(NULL, 1, &o), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_trace(hand.stack, 1, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_retrieve(NULL, 1, &tree), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_retrieve(hand.stack, 1, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_returned(NULL, 1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_returned(hand.stack, 1), INCSTACK_ERANGE);
	ck_assert_int_eq(incstack_heap_stack_unwinding_to(NULL, 1, 1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_lift(NULL, 1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_heap_stack_adopt(NULL), INCSTACK_EINVAL);
	static const uintptr_t no_names[] = {0, INCSTACK_HEAP_UNKNOWN};
	for (int i = 0; i < 2; i++) {
		const uintptr_t name = no_names[i];
		ck_assert_int_eq(incstack_heap_stack_sample(hand.stack, name, 0, 0),
				 INCSTACK_EINVAL);
		ck_assert_int_eq(incstack_heap_stack_trace(hand.stack, name, &o), INCSTACK_EINVAL);
		ck_assert_int_eq(incstack_heap_stack_unwinding_to(hand.stack, name, 1),
				 INCSTACK_EINVAL);
		ck_assert_int_eq(incstack_heap_stack_unwinding_to(hand.stack, 1, name),
				 INCSTACK_EINVAL);
	}
	incstack_heap_stack_destroy(NULL);
	incstack_heap_destroy(NULL);
	incstack_heap_tree_release(NULL, NULL);
	hand_close();
}
END_TEST

START_TEST(a_walk_in_a_circle_ends)
{
	hand_open((uint32_t)_i % 3, 3);
	hand_calls(1000);
	hand.circle = 3;
	hand.to = 3 + (uintptr_t)_i * 37 % 997;
	const struct incstack_heap_object *o = hand_trace();
	ck_assert_uint_le(hand_length(o), 5000);
	ck_assert_uint_eq(hand_last(o)->frame.flags, INCSTACK_HEAP_TRUNCATED);
	ck_assert_uint_eq(hand_stats().endless, 1);
	ck_assert_uint_eq(hand_stats().truncated, 1);
	hand.circle = 0;
	if (_i % 3 != INCSTACK_HEAP_BARRIER)
		ck_assert_uint_eq(hand_length(hand_trace()), 1000);
	hand_close();
}
END_TEST

static uintptr_t endless(void *context, void *identity, uintptr_t name,
			 struct incstack_heap_frame *f)
{
	(void)context;
	(void)identity;
	f->function = 1;
	return name + 1;
}

static int mark_anything(void *context, void *identity, uintptr_t name, int on)
{
	(void)context;
	(void)identity;
	(void)name;
	(void)on;
	return 0;
}

START_TEST(a_walk_without_an_end_is_cut_at_the_limit)
{
	struct incstack_heap_options options = hand_options();
	options.walk = endless;
	options.mark = mark_anything;
	options.mode = (uint32_t)_i;
	options.frame_limit = 1000;
	hand_open_with(options);
	hand.top = HAND_FRAMES;
	for (unsigned samples = 1; samples < 4; samples++) {
		const struct incstack_heap_object *o = hand_trace();
		ck_assert_uint_ge(hand_length(o), 1000);
		ck_assert_uint_le(hand_length(o), 1070);
		ck_assert_uint_eq(hand_last(o)->frame.flags, INCSTACK_HEAP_TRUNCATED);
		ck_assert_uint_eq(hand_stats().endless, samples);
	}
	hand_close();
}
END_TEST

START_TEST(an_unknown_caller_truncates)
{
	hand_open((uint32_t)_i, 1);
	hand_calls(9);
	hand.unknown = 4;
	const struct incstack_heap_object *o = hand_trace();
	ck_assert_uint_eq(hand_length(o), 6);
	ck_assert_uint_eq(hand_last(o)->frame.flags, INCSTACK_HEAP_TRUNCATED);
	ck_assert_uint_eq(hand_stats().truncated, 1);
	ck_assert_uint_eq(hand_stats().endless, 0);
	hand_close();
}
END_TEST

/* Frames 3 and 2 were marked and are popped without a word. Frame 1 runs on and calls others. */
START_TEST(an_unreported_return_is_noticed)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(4);
	hand_sample(0);
	hand.top = 1;
	hand.frames[1].position = 5;
	if (_i & 1)
		hand_calls(3); /* the same functions */
	if (_i & 2)
		hand_sample(1);
	const struct incstack_heap_tree *tree = hand_retrieve();
	const struct incstack_heap_object *last = hand_last(tree->traces->top);
	ck_assert_uint_eq(hand_length(tree->traces->top), 2); /* 4 and 3 are right */
	ck_assert_uint_eq(last->frame.flags, INCSTACK_HEAP_TRUNCATED);
	ck_assert_uint_eq(hand_stats().truncated, 1);
	ck_assert_uint_eq(hand_stats().stale, 1);
	if (_i & 2)
		ck_assert_uint_eq(hand_length(tree->traces->next->top), hand.top);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* The same, and then an error is reported. No frame of an older time is in the trace, and none that is gone is
 * walked. */
START_TEST(an_error_follows_an_unreported_return)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(_i ? 4 : 6);
	hand_sample(0);
	hand.top = _i ? 2 : 3;
	hand.frames[hand.top].position = 5;
	hand_call(14);
	if (_i == 0)
		hand_call(15);
	ck_assert_int_eq(incstack_heap_stack_unwinding_to(hand.stack, hand.top,
							  _i == 2 ? 2
							  : _i    ? 1
								  : 3),
			 0);
	hand.top = _i == 2 ? 2 : _i ? 1 : 3;
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_uint_eq(hand_length(tree->traces->top), 2);
	ck_assert_uint_eq(hand_last(tree->traces->top)->frame.flags, INCSTACK_HEAP_TRUNCATED);
	ck_assert_uint_eq(hand_positions(tree->traces->top), 0);
	ck_assert_uint_eq(hand_stats().truncated, 1);
	ck_assert_uint_eq(hand_stats().stale, 1);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* The same, and a walk is cut, so that nothing shows which marked frames are still there. */
START_TEST(what_lies_beyond_an_unknown_caller_is_not_trusted)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(4);
	hand_sample(0);
	hand.top = 1;
	for (uint64_t function = 12; function < 15; function++)
		hand_call(function);
	if (_i == 0) /* a new mark, on the frame that has the memory of the old one */
		hand_sample(1);
	hand.unknown = _i == 0 ? 2 : 3;
	if (_i == 2)
		ck_assert_uint_eq(hand_length(hand_trace()), 2);
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_uint_eq(tree->traces->top->parent->frame.function, 3);
	ck_assert_uint_eq(tree->traces->top->parent->frame.flags, INCSTACK_HEAP_TRUNCATED);
	ck_assert_ptr_null(tree->traces->top->parent->parent);
	if (_i == 0)
		ck_assert_uint_eq(hand_length(tree->traces->next->top), 3);
	ck_assert_uint_gt(hand_stats().stale, 0);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* Control has returned to frame 3, which is still there. Its callers cannot have changed. */
START_TEST(an_unreported_return_to_a_frame_that_runs_is_served)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(4);
	hand_sample(0);
	hand.top = 3;
	hand.frames[3].position = 5;
	hand_sample(1);
	ck_assert_uint_eq(hand_marks(), 2);
	ck_assert_uint_eq(hand_stats().stale, 1);
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_uint_eq(hand_positions(tree->traces->top), 0);
	ck_assert_uint_eq(hand_length(tree->traces->top), 4);
	ck_assert_uint_eq(hand_positions(tree->traces->next->top), 500);
	ck_assert_uint_eq(hand_stats().truncated, 0);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* A new frame with the mark of an old one: of another function, or at another position. */
START_TEST(a_mark_that_nobody_set_is_cleared)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(6);
	hand_sample(0);
	ck_assert_uint_eq(hand_marks(), 5);
	hand.frames[5].function += _i & 1;
	hand.frames[5].position += _i & 2;
	hand.frames[3].marked = true;
	hand_sample(1);
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_uint_eq(hand_length(tree->traces->next->top), 6);
	ck_assert(!hand.frames[3].marked);
	ck_assert_uint_eq(tree->traces->next->top->parent->frame.function, 5 + (_i & 1));
	ck_assert_uint_eq(tree->traces->next->top->parent->frame.position, _i & 2);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* The same for a frame that another one has called. */
START_TEST(a_mark_on_a_frame_with_another_caller_is_cleared)
{
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	hand_calls(6);
	hand_sample(0);
	if (_i)
		incstack_heap_tree_release(hand_retrieve(), NULL); /* its callers are known */
	hand.circle = 5;
	hand.to = 3;
	ck_assert_uint_eq(hand_length(hand_trace()), 5);
	ck_assert_uint_eq(hand_stats().stale, 1);
	incstack_heap_tree_release(hand_retrieve(), NULL);
	hand_close();
}
END_TEST

static bool hides_mark;

static uintptr_t hide_a_mark_once(void *context, void *identity, uintptr_t name,
				  struct incstack_heap_frame *f)
{
	const uintptr_t caller = hand_walk(context, identity, name, f);
	if (hides_mark)
		f->flags = 0;
	hides_mark = false;
	return caller;
}

/* The running frame has a mark that `walk` does not always tell. What is known is not written over. */
START_TEST(a_mark_on_the_top_comes_and_goes)
{
	struct incstack_heap_options options = hand_options();
	options.walk = hide_a_mark_once;
	options.distance = 1;
	hand_open_with(options);
	hand_calls(3);
	hand_sample(1);
	incstack_heap_tree_release(hand_retrieve(), NULL);
	ck_assert_int_eq(hand_return(), 0);
	ck_assert_uint_eq(hand_marks(), 1);
	hand_sample(5);
	hand.top = 1; /* not reported */
	hides_mark = true;
	ck_assert_uint_eq(hand_length(hand_trace()), 1);
	hand_calls(8);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(hand_length(hand_trace()), 9);
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_uint_eq(tree->traces->id, 5);
	ck_assert_uint_eq(hand_length(tree->traces->top), 2);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

/* The embedder's functions may not use the stack that they are asked about. */
static int errors[9];

static uintptr_t walk_and_call(void *context, void *identity, uintptr_t name,
			       struct incstack_heap_frame *f)
{
	const struct incstack_heap_object *o;
	const struct incstack_heap_tree *tree;
	errors[0] = incstack_heap_stack_sample(hand.stack, name, 0, 0);
	errors[1] = incstack_heap_stack_trace(hand.stack, name, &o);
	errors[2] = incstack_heap_stack_retrieve(hand.stack, name, &tree);
	errors[3] = incstack_heap_stack_returned(hand.stack, name);
	errors[4] = incstack_heap_stack_unwinding_to(hand.stack, name, name);
	errors[5] = incstack_heap_stack_lift(hand.stack, name);
	errors[6] = incstack_heap_stack_lift(hand.stack, 0);
	errors[7] = incstack_heap_stack_adopt(hand.stack);
	errors[8] = incstack_heap_tree_release(NULL, hand.stack);
	incstack_heap_stack_destroy(hand.stack);
	return hand_walk(context, identity, name, f);
}

START_TEST(a_call_within_a_call_is_refused)
{
	struct incstack_heap_options options = hand_options();
	options.walk = walk_and_call;
	hand_open_with(options);
	hand_calls(1);
	ck_assert_uint_eq(hand_length(hand_trace()), 1);
	for (int i = 0; i < 9; i++)
		ck_assert_int_eq(errors[i], INCSTACK_EBUSY);
	ck_assert_uint_eq(hand_stats().busy, 10);
	hand_close();
}
END_TEST

START_TEST(a_stack_is_destroyed_with_open_traces)
{
	hand_open((uint32_t)_i, 1);
	hand_calls(40);
	for (unsigned i = 0; i < 40; i++)
		hand_sample(i);
	const struct incstack_heap_tree *tree = hand_retrieve();
	for (unsigned i = 0; i < 40; i++)
		hand_sample(i);
	incstack_heap_stack_destroy(hand.stack);
	hand.stack = NULL;
	ck_assert_uint_eq(hand_length(tree->traces->top), 40);
	incstack_heap_destroy(hand.heap);
	ck_assert_uint_ne(hand.allocated, 0); /* the tree lives on */
	ck_assert_uint_eq(hand_length(tree->traces->top), 40);
	incstack_heap_tree_release(tree, NULL);
	ck_assert_uint_eq(hand.allocated, 0);
}
END_TEST

START_TEST(the_limit_of_memory_holds)
{
	struct incstack_heap_options options = hand_options();
	options.memory_limit = 16384;
	options.mode = (uint32_t)_i;
	hand_open_with(options);
	hand_calls(50);
	int error = 0;
	uint64_t taken = 0;
	for (; !error; taken += !error) {
		ck_assert_uint_le(hand.allocated, 16384);
		ck_assert_uint_lt(taken, 2000);
		hand.frames[1].position++;
		error = incstack_heap_stack_sample(hand.stack, hand.top, taken, 1);
	}
	ck_assert_int_eq(error, INCSTACK_ELIMIT);
	ck_assert_uint_eq(hand_stats().lost, 1);
	ck_assert_uint_eq(hand_stats().samples, taken);
	hand_close();
}
END_TEST

static TCase *tests(void)
{
	TCase *c = tcase_create("hostile");
	const int modes = INCSTACK_HEAP_FULL + 1;
	tcase_add_test(c, options_are_checked);
	tcase_add_test(c, arguments_are_checked);
	tcase_add_loop_test(c, a_walk_in_a_circle_ends, 0, 60);
	tcase_add_loop_test(c, a_walk_without_an_end_is_cut_at_the_limit, 0, modes);
	tcase_add_loop_test(c, an_unknown_caller_truncates, 0, modes);
	tcase_add_loop_test(c, an_unreported_return_is_noticed, 0, 4);
	tcase_add_loop_test(c, an_error_follows_an_unreported_return, 0, 3);
	tcase_add_loop_test(c, what_lies_beyond_an_unknown_caller_is_not_trusted, 0, 3);
	tcase_add_test(c, an_unreported_return_to_a_frame_that_runs_is_served);
	tcase_add_loop_test(c, a_mark_that_nobody_set_is_cleared, 0, 4);
	tcase_add_loop_test(c, a_mark_on_a_frame_with_another_caller_is_cleared, 0, 2);
	tcase_add_test(c, a_mark_on_the_top_comes_and_goes);
	tcase_add_test(c, a_call_within_a_call_is_refused);
	tcase_add_loop_test(c, a_stack_is_destroyed_with_open_traces, 0, modes);
	tcase_add_loop_test(c, the_limit_of_memory_holds, 0, modes);
	return c;
}

int main(void)
{
	Suite *suite = suite_create("hostile embedders of frames on the heap");
	suite_add_tcase(suite, tests());
	return run_suite(suite);
}
