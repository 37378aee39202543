/* SPDX-License-Identifier: MIT
 *
 * Tests how long runtimes, stacks and trees live.
 */
#include "hand_made.h"
#include "run_suite.h"

enum { TOP = 20 };

START_TEST(a_runtime_ends_with_its_last_stack_and_tree)
{
	struct incstack_tree *tree;
	hand_open((struct incstack_options){.distance = 1});
	hand_sample(TOP);
	tree = hand_retrieve();
	incstack_runtime_destroy(hand.rt);
	hand_sample(TOP - 1);
	incstack_stack_destroy(hand.s);
	ck_assert_uint_ne(hand.live, 0);
	ck_assert_uint_eq(tree->count, 1);
	incstack_tree_release(tree);
	ck_assert_uint_eq(hand.live, 0);
}
END_TEST

START_TEST(a_stack_of_another_thread_stays)
{
	hand_open((struct incstack_options){.distance = 1});
	hand_sample(TOP);
	hand.s->owner++;
	incstack_stack_destroy(hand.s);
	hand.s->owner--;
	ck_assert(hand_patched(TOP));
	ck_assert_uint_eq(hand_return(TOP), hand_pc(TOP - 1));
	hand_all_complete();
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lifetimes");
	TCase *tests = tcase_create("lifetimes");
	tcase_add_test(tests, a_runtime_ends_with_its_last_stack_and_tree);
	tcase_add_test(tests, a_stack_of_another_thread_stays);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
