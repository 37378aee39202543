/* SPDX-License-Identifier: MIT
 *
 * Tests the frame at which a trace ends because its return slot holds 0, and the window in which
 * the distance of barriers is chosen.
 */
#include "trace/distance.h"
#include "hand_made.h"
#include "run_suite.h"

enum { TOP = 20, BASE = 8, WINDOW = 128, IDLE = 896 };

static void ends_at(const struct incstack_frame_object *o, unsigned n, unsigned base)
{
	for (; n > base; n--, o = o->parent)
		ck_assert_uint_eq(o->function, n);
	ck_assert_uint_eq(o->function, base);
	ck_assert(o->flags & INCSTACK_OBJECT_BASE);
	ck_assert(!(o->flags & INCSTACK_OBJECT_TRUNCATED));
	ck_assert_ptr_null(o->parent);
}

/* Samples compare the stack with what they remember. The frame is the outermost one only as long as
 * its slot says so, on the fast path and on the general one. */
START_TEST(gets_a_caller)
{
	const bool validates = _i % 2;
	struct incstack_tree *tree;
	hand_open((struct incstack_options){
		.distance = 1, .mode = validates ? INCSTACK_MODE_VALIDATE : INCSTACK_MODE_FULL});
	if (_i / 2)
		hand.rules[BASE + 1] = hand_deref_rule;
	*hand_slot(BASE) = 0;
	for (int i = 0; i < 3; i++)
		hand_sample(TOP);
	tree = hand_retrieve();
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		ends_at(t->top, TOP, BASE);
	incstack_tree_release(tree);
	*hand_slot(BASE) = hand_pc(BASE - 1);
	for (int i = 0; i < 3; i++)
		hand_sample(TOP);
	hand_all_complete();
	hand_close();
}
END_TEST

/* This many pairs of samples are compared; then there is a pause. */
START_TEST(window_of_the_distance)
{
	hand_open((struct incstack_options){.distance = 0});
	for (unsigned i = 0; i < WINDOW; i++) {
		hand_sample(TOP);
		ck_assert_uint_eq(hand.s->distance.samples, i);
	}
	hand_sample(TOP);
	ck_assert_uint_eq(hand.s->distance.samples, 0);
	ck_assert_uint_eq(hand.s->distance.value, 0); /* nothing is ever popped */
	ck_assert_uint_eq(hand.s->observe_at, hand.s->samples + IDLE);
	hand_all_complete();
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("outermost frame");
	TCase *tests = tcase_create("all");
	tcase_add_loop_test(tests, gets_a_caller, 0, 4);
	tcase_add_test(tests, window_of_the_distance);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
