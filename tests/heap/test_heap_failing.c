/* SPDX-License-Identifier: MIT
 *
 * Tests frames on the heap while the Nth allocation fails, for every N: only this one, or all that follow,
 * too. What fails says so, no trace is wrong, and nothing is left behind.
 */
#include "by_hand.h"

static bool only_one, has_failed;

static void *failing_memory(void *context, void *memory, size_t bytes)
{
	void *result = hand_memory(context, memory, bytes);
	if (!memory && !result) {
		has_failed = true;
		hand.fail_after = only_one ? -1 : 0;
	}
	return result;
}

static int failures, not_complete;

static bool succeeds(int error)
{
	ck_assert(error == 0 || error == INCSTACK_ENOMEM);
	failures += error != 0;
	return error == 0;
}

/* Each frame has its depth as position. */
static void check_trace(const struct incstack_heap_object *o, uint64_t depth)
{
	for (; o; depth--, o = o->parent) {
		ck_assert_uint_eq(o->frame.position, depth);
		const unsigned last =
			o->frame.flags & (INCSTACK_HEAP_BASE | INCSTACK_HEAP_TRUNCATED);
		ck_assert(!o->parent == (last != 0));
		not_complete += (last & INCSTACK_HEAP_TRUNCATED) != 0;
	}
}

static void check_tree(const struct incstack_heap_tree *tree)
{
	for (const struct incstack_heap_trace *t = tree->traces; t; t = t->next)
		check_trace(t->top, t->id);
	incstack_heap_tree_release(tree, NULL);
}

static void go_to(uintptr_t depth)
{
	while (hand.top < depth) {
		hand_call(1);
		hand.frames[hand.top].position = (uint32_t)hand.top;
	}
	while (hand.top > depth)
		succeeds(hand_return());
}

/* Samples at different depths, in one way of the library after the other. */
static void scenario(struct incstack_heap_stack *stack)
{
	static const uintptr_t depths[] = {5, 40, 12, 200, 190, 30, 31, 8, 300, 2};
	const struct incstack_heap_object *o;
	const struct incstack_heap_tree *tree;
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		go_to(depths[i]);
		for (int again = 0; again < 3; again++)
			succeeds(incstack_heap_stack_sample(stack, hand.top, hand.top, 1));
		if (i % 2 && succeeds(incstack_heap_stack_trace(stack, hand.top, &o)))
			check_trace(o, hand.top);
		if (i % 3 == 2 && succeeds(incstack_heap_stack_retrieve(stack, hand.top, &tree)))
			check_tree(tree);
		if (i == 4) {
			succeeds(incstack_heap_stack_unwinding_to(stack, hand.top, hand.top - 3));
			hand.top -= 3;
		}
		if (i == 7)
			succeeds(incstack_heap_stack_lift(stack, hand.top));
	}
}

/* Returns whether an allocation failed. */
static bool run_failing(uint32_t mode, uint32_t distance, long after)
{
	struct incstack_heap_options options = hand_options();
	options.mode = mode;
	options.distance = distance;
	options.memory = failing_memory;
	failures = not_complete = 0;
	has_failed = false;
	hand_open_with(options);
	hand.fail_after = after;
	scenario(hand.stack);
	hand.fail_after = -1;
	check_tree(hand_retrieve());
	ck_assert_uint_le((unsigned)(hand_stats().lost != 0), (unsigned)failures);
	ck_assert(!not_complete == !hand_stats().truncated || hand_stats().lost);
	ck_assert(failures || !not_complete);
	hand_close();
	return has_failed;
}

START_TEST(every_allocation_fails_once)
{
	const uint32_t mode = (uint32_t)_i % 3, distance = (uint32_t)_i / 3 % 3;
	only_one = _i >= 9;
	long after = 0;
	while (run_failing(mode, distance, after))
		after++;
	ck_assert_int_gt(after, 4); /* otherwise nothing was tested */
}
END_TEST

/* A return that was not reported is served, and makes frames known. Then there is no memory for the sample. */
START_TEST(what_a_failing_sample_made_known_stays)
{
	int error = 0;
	hand_open(INCSTACK_HEAP_BARRIER, 1);
	go_to(9 + (uintptr_t)_i % 3);
	for (int i = 0; i <= _i / 3; i++)
		hand_sample(hand.top);
	hand.top--;
	hand.fail_after = 0;
	for (int i = 0; i < 50 && !error; i++)
		error = incstack_heap_stack_sample(hand.stack, hand.top, hand.top, 1);
	hand.fail_after = -1;
	ck_assert_int_eq(error, INCSTACK_ENOMEM);
	for (int i = 0; i < 20; i++)
		hand_sample(hand.top);
	check_tree(hand_retrieve());
	go_to(2);
	hand_close();
}
END_TEST

/* A deep walk needs several chunks. The last of them cannot be made. */
START_TEST(a_sample_that_fails_gives_its_memory_back)
{
	hand_open((uint32_t)_i, 0);
	hand_calls(1000);
	const size_t bytes = hand.allocated;
	for (long after = 0; after < 6; after++) {
		hand.fail_after = after;
		ck_assert_int_eq(incstack_heap_stack_sample(hand.stack, hand.top, 2, 1),
				 INCSTACK_ENOMEM);
		ck_assert_uint_eq(hand.allocated, bytes);
	}
	hand_close();
}
END_TEST

/* The memory of the last trace at once is used again, but not if other things lie there. */
START_TEST(a_trace_at_once_that_fails_leaves_its_memory)
{
	hand_open(INCSTACK_HEAP_FULL, 0);
	hand_calls(5);
	hand_trace();
	hand_calls(100);
	const struct incstack_heap_object *o;
	hand.fail_after = 0;
	ck_assert_int_eq(incstack_heap_stack_trace(hand.stack, hand.top, &o), INCSTACK_ENOMEM);
	hand.fail_after = -1;
	hand.top = 3; /* with the trace itself, as large as five frames */
	hand_sample(7);
	ck_assert_uint_eq(hand_length(hand_trace()), 3);
	const struct incstack_heap_tree *tree = hand_retrieve();
	ck_assert_uint_eq(tree->traces->id, 7);
	ck_assert_uint_eq(hand_length(tree->traces->top), 3);
	incstack_heap_tree_release(tree, NULL);
	hand_close();
}
END_TEST

START_TEST(a_stack_that_cannot_be_made)
{
	struct incstack_heap_stack *stack = NULL;
	hand_open(INCSTACK_HEAP_BARRIER, 0);
	hand.fail_after = 0;
	ck_assert_int_eq(incstack_heap_stack_create(hand.heap, NULL, &stack), INCSTACK_ENOMEM);
	ck_assert_ptr_null(stack);
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frames on the heap without memory");
	TCase *c = tcase_create("failing");
	tcase_add_loop_test(c, every_allocation_fails_once, 0, 18);
	tcase_add_loop_test(c, what_a_failing_sample_made_known_stays, 0, 60);
	tcase_add_loop_test(c, a_sample_that_fails_gives_its_memory_back, INCSTACK_HEAP_VALIDATE,
			    INCSTACK_HEAP_FULL + 1);
	tcase_add_test(c, a_trace_at_once_that_fails_leaves_its_memory);
	tcase_add_test(c, a_stack_that_cannot_be_made);
	suite_add_tcase(suite, c);
	return run_suite(suite);
}
