/* SPDX-License-Identifier: MIT
 *
 * Tests samples in a handler that runs on the stack that its signal interrupted. No barrier is
 * planted where the handler returns to the kernel's frame, none for the interrupted frame, which
 * has no return slot, and none in the slot of the interrupted function, which may be about to
 * copy it. The frames behind it get theirs.
 */
#include "hand_made.h"
#include "run_suite.h"

enum { TOP = 41, HANDLER = 40, KERNEL = 50, INTERRUPTED = 10, DISTANCES = 3 };

/* The frame of HANDLER lies below the registers that the kernel saved of INTERRUPTED. */
static void lay_out_handler(void)
{
	enum { FIRST = 5, RBP = FIRST + 10, RSP = FIRST + 15, RIP = FIRST + 16 };
	uintptr_t *registers = hand_slot(HANDLER) + 1;
	hand.rules[KERNEL] = (struct incstack_rule){.kind = INCSTACK_RULE_SIGNAL};
	*hand_slot(HANDLER) = hand_pc(KERNEL);
	registers[RBP] = hand_fp(INTERRUPTED);
	registers[RSP] = hand_sp(INTERRUPTED);
	registers[RIP] = hand_pc(INTERRUPTED);
}

static void signal_is_left_alone(void)
{
	ck_assert_uint_eq(*hand_slot(HANDLER), hand_pc(KERNEL));
	ck_assert_uint_eq(*hand_slot(INTERRUPTED + 1), hand_pc(INTERRUPTED)); /* red zone */
	ck_assert_uint_eq(*hand_slot(INTERRUPTED), hand_pc(INTERRUPTED - 1));
}

static unsigned patched_behind(void)
{
	unsigned count = 0;
	for (unsigned n = 1; n < INTERRUPTED; n++)
		count += hand_patched(n);
	return count;
}

static void shows_the_signal(const struct incstack_frame_object *o)
{
	static const unsigned frames[] = {TOP, HANDLER, KERNEL, INTERRUPTED};
	for (int i = 0; i < 4; i++, o = o->parent) {
		ck_assert_uint_eq(o->function, frames[i]);
		ck_assert_int_eq(!!(o->flags & INCSTACK_OBJECT_SIGNAL), frames[i] == KERNEL);
		ck_assert_int_eq(!!(o->flags & INCSTACK_OBJECT_EXACT), frames[i] == INTERRUPTED);
	}
	hand_shows_all(o, INTERRUPTED - 1);
}

static void retrieve_and_compare(void)
{
	struct incstack_tree *tree = hand_retrieve();
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		shows_the_signal(t->top);
	ck_assert_uint_eq(tree->truncated, 0);
	incstack_tree_release(tree);
}

/* So that the fast paths find them. */
static void learn_rules(void)
{
	struct incstack_stack *s = hand_stack();
	const struct incstack_top top = hand_top(TOP, 0);
	ck_assert_int_eq(incstack_stack_set_mode(s, INCSTACK_MODE_FULL), 0);
	ck_assert_int_eq(incstack_stack_sample(s, 0, 1, &top), 0);
	incstack_stack_destroy(s);
}

/* Its callers are walked when the handler's callee returns, or are known by then. */
START_TEST(left_alone)
{
	const bool known_by_then = _i / DISTANCES % 2;
	hand_open((struct incstack_options){.distance = (unsigned)(_i % DISTANCES) + 1});
	lay_out_handler();
	if (_i / DISTANCES / 2)
		learn_rules();
	hand_sample(TOP);
	signal_is_left_alone();
	if (known_by_then)
		retrieve_and_compare();
	signal_is_left_alone();
	if (hand_patched(TOP))
		ck_assert_uint_eq(hand_return(TOP), hand_pc(HANDLER));
	signal_is_left_alone();
	ck_assert_uint_eq(patched_behind(), 1);
	for (unsigned n = INTERRUPTED; n > 1; n--) {
		const uintptr_t pc = hand_pc(n - 1);
		ck_assert_uint_eq(hand_return(n), pc);
	}
	if (!known_by_then)
		retrieve_and_compare();
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("signal frames");
	TCase *tests = tcase_create("with barriers behind them");
	tcase_add_loop_test(tests, left_alone, 0, 4 * DISTANCES);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
