/* SPDX-License-Identifier: MIT
 *
 * Tests of mode validate: the rules that it keeps in objects are never seen from outside, and are
 * gone in other modes.
 */
#include "hand_made.h"
#include "run_suite.h"

enum { TOP = 20, ROUNDS = 3 };

/* Without decode, objects stay raw, and their bci is unknown. */
static void open_raw(uint32_t mode)
{
	struct incstack_embedder embedder = hand_embedder();
	embedder.code.decode = NULL;
	hand_open_with((struct incstack_options){.distance = 1, .mode = mode}, &embedder);
}

static void sample_some(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		hand_sample(TOP - i);
}

static bool keeps_rules(void)
{
	return hand.s->newest && hand.s->newest->position != -1;
}

static void retrieve_unknown(void)
{
	struct incstack_tree *tree = hand_retrieve();
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		for (const struct incstack_frame_object *o = t->top; o; o = o->parent) {
			ck_assert(o->flags & INCSTACK_OBJECT_RAW);
			ck_assert_int_eq(o->position, -1);
		}
	incstack_tree_release(tree);
}

START_TEST(rules_are_hidden)
{
	open_raw(INCSTACK_MODE_VALIDATE);
	for (unsigned i = 0; i < ROUNDS; i++) {
		sample_some();
		ck_assert(keeps_rules());
		retrieve_unknown();
	}
	hand_close();
}
END_TEST

/* The mode changes while traces are open. */
START_TEST(rules_are_hidden_from_other_modes)
{
	static const enum incstack_mode others[] = {INCSTACK_MODE_PATCH, INCSTACK_MODE_FULL};
	open_raw(others[_i]);
	sample_some();
	ck_assert(!keeps_rules());
	ck_assert_int_eq(incstack_stack_set_mode(hand.s, INCSTACK_MODE_VALIDATE), 0);
	sample_some();
	ck_assert(keeps_rules());
	ck_assert_int_eq(incstack_stack_set_mode(hand.s, others[_i]), 0);
	sample_some();
	ck_assert(!keeps_rules());
	retrieve_unknown();
	hand_close();
}
END_TEST

/* A stack of unknown bounds never remembers, whatever the mode of the runtime is. */
START_TEST(anywhere)
{
	struct incstack_stack *s;
	struct incstack_stats stats = {.size = sizeof(stats)};
	open_raw(INCSTACK_MODE_VALIDATE);
	ck_assert_int_eq(incstack_stack_create(hand.rt, 0, 0, &s), 0);
	ck_assert_int_eq(incstack_stack_stats(s, &stats), 0);
	ck_assert_uint_eq(stats.mode, INCSTACK_MODE_FULL);
	ck_assert_int_eq(incstack_stack_set_mode(s, INCSTACK_MODE_VALIDATE), INCSTACK_EINVAL);
	incstack_stack_destroy(s);
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mode validate");
	TCase *rules = tcase_create("rules");
	tcase_add_test(rules, rules_are_hidden);
	tcase_add_loop_test(rules, rules_are_hidden_from_other_modes, 0, 2);
	tcase_add_test(rules, anywhere);
	suite_add_tcase(suite, rules);
	return run_suite(suite);
}
