/* SPDX-License-Identifier: MIT
 *
 * Tests the rules of code that is unloaded: forgetting them waits for no thread, and mode validate
 * does not reuse what it found by them.
 */
#include "run_suite.h"
#include "simulated.h"

static void open_usual(struct incstack_options options)
{
	sim.usual = true;
	ck_assert_int_eq(sim_open(options), 0);
}

/* A handler that has interrupted the thread that makes a larger table must be able to forget
 * rules. */
START_TEST(forgetting_waits_for_nobody)
{
	open_usual((struct incstack_options){.mode = INCSTACK_MODE_FULL});
	ck_assert_int_eq(sim_sample(), 0);
	unsigned asked = sim.asked;
	ck_assert(!atomic_flag_test_and_set(&sim.rt->rule_lock));
	ck_assert_int_eq(incstack_runtime_code_unloading(sim.rt, NULL, 0, UINTPTR_MAX), 0);
	atomic_flag_clear(&sim.rt->rule_lock);
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_uint_gt(sim.asked, asked);
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_close();
}
END_TEST

static uintptr_t position(unsigned function)
{
	return SIM_CODE + function * SIM_CALLS + 8;
}

/* Three frames: the one in the middle, of function 3, grows by a word when its code is
 * replaced, and the return address that it had is still there, in a local variable. */
static void lay_out(uintptr_t *words, unsigned outermost)
{
	const uintptr_t at = (uintptr_t)words;
	const unsigned slot = 3 + (unsigned)sim_locals(3);
	words[1] = at + 12 * sizeof(uintptr_t);
	words[2] = position(3);
	words[slot] = position(outermost);
	words[12] = words[13] = 0;
	sim.frames[0] = (struct sim_frame){.function = outermost,
					   .pc = position(outermost),
					   .sp = (uintptr_t)(words + slot + 1),
					   .fp = words[1]};
	sim.frames[1] = (struct sim_frame){
		.function = 3, .pc = position(3), .sp = (uintptr_t)(words + 3), .fp = words[1]};
	sim.frames[2] = (struct sim_frame){
		.function = 1, .pc = position(1), .sp = at, .fp = (uintptr_t)(words + 1)};
	sim.depth = 3;
}

/* Mode validate compares the stack with what was found by rules that no longer hold. */
START_TEST(validate_forgets_rules)
{
	uintptr_t *words = sim.words + SIM_WORDS - 40;
	open_usual((struct incstack_options){.mode = INCSTACK_MODE_VALIDATE});
	lay_out(words, 2);
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_int_eq(incstack_runtime_code_unloading(sim.rt, NULL, 0, UINTPTR_MAX), 0);
	sim.layout++;
	lay_out(words, 4);
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_nothing_is_lost();
	sim.depth = 1; /* the frames were not called: none has a slot to look at */
	sim_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("unload");
	TCase *tests = tcase_create("unload");
	tcase_add_test(tests, forgetting_waits_for_nobody);
	tcase_add_test(tests, validate_forgets_rules);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
