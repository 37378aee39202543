/* SPDX-License-Identifier: MIT
 *
 * Tests of the step by an unwind rule, over a stack of words of which some cannot be read.
 */
#include "trace/step.h"
#include "run_suite.h"

enum { SIZE = sizeof(uintptr_t), WORDS = 32, BASE = 0x1000, NOTHING = -1 };

static uintptr_t words[WORDS];
static int unreadable; /* the number of a word */
static struct cursor at;
static struct incstack_rule rule;
static uintptr_t slot;

static uintptr_t place(int n)
{
	return BASE + (uintptr_t)(n * SIZE);
}

static bool read_word(const void *memory, const struct cursor *from, uintptr_t address,
		      uintptr_t *word)
{
	const uintptr_t number = (address - BASE) / SIZE;

	ck_assert_ptr_eq(memory, words);
	ck_assert_uint_eq(from->sp, at.sp);
	if (number >= WORDS || address % SIZE || (int)number == unreadable)
		return false;
	*word = words[number];
	return true;
}

/* A frame whose stack pointer leads to the word 4, and which has the frame pointer 8. */
static void lay_out(uint32_t kind, int cfa, int ra, int fp)
{
	for (int i = 0; i < WORDS; i++)
		words[i] = (uintptr_t)(100 + i);
	unreadable = NOTHING;
	at = (struct cursor){.pc = 1, .sp = place(4), .fp = place(8), .exact = true};
	rule = (struct incstack_rule){.kind = kind,
				      .cfa_offset = cfa * SIZE,
				      .ra_offset = (uint16_t)(ra * SIZE),
				      .fp_offset = (uint16_t)(fp * SIZE)};
}

static enum step step(void)
{
	return step_by_rule(read_word, words, &at, &rule, &slot);
}

static void check(uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
	ck_assert_uint_eq(at.pc, pc);
	ck_assert_uint_eq(at.sp, sp);
	ck_assert_uint_eq(at.fp, fp);
	ck_assert(!at.exact && !at.signal);
}

static void check_unchanged(void)
{
	ck_assert_uint_eq(at.pc, 1);
	ck_assert_uint_eq(at.sp, place(4));
	ck_assert_uint_eq(at.fp, place(8));
	ck_assert(at.exact && !at.signal);
}

START_TEST(to_the_caller)
{
	lay_out(INCSTACK_RULE_SP, 3, 1, 0);
	ck_assert_int_eq(step(), STEP_FRAME);
	check(106, place(7), place(8));
	ck_assert_uint_eq(slot, place(6));
	lay_out(INCSTACK_RULE_FP, 2, 1, 2);
	ck_assert_int_eq(step(), STEP_FRAME);
	check(109, place(10), 108);
	lay_out(INCSTACK_RULE_FP_DEREF, 1, 1, 0);
	words[9] = place(12);
	ck_assert_int_eq(step(), STEP_FRAME);
	check(111, place(12), 108);
	lay_out(INCSTACK_RULE_FP_DEREF, 1, 2, 1);
	words[9] = place(12);
	ck_assert_int_eq(step(), STEP_FRAME);
	check(110, place(12), 107);
}
END_TEST

START_TEST(to_what_a_signal_interrupted)
{
	lay_out(INCSTACK_RULE_SIGNAL, 0, 0, 0);
	slot = 1;
	at.exact = false;
	ck_assert_int_eq(step(), STEP_FRAME);
	ck_assert_uint_eq(at.pc, 104 + INCSTACK__SIGNAL_PC / SIZE);
	ck_assert_uint_eq(at.sp, 104 + INCSTACK__SIGNAL_SP / SIZE);
	ck_assert_uint_eq(at.fp, 104 + INCSTACK__SIGNAL_FP / SIZE);
	ck_assert(at.exact && at.signal);
	ck_assert_uint_eq(slot, 0);
}
END_TEST

START_TEST(to_no_caller)
{
	lay_out(INCSTACK_RULE_END, 0, 0, 0);
	ck_assert_int_eq(step(), STEP_END);
	lay_out(INCSTACK_RULE_NONE, 3, 1, 0);
	ck_assert_int_eq(step(), STEP_UNKNOWN);
	lay_out(INCSTACK_RULE_END + 1, 3, 1, 0);
	ck_assert_int_eq(step(), STEP_UNKNOWN);
	lay_out(INCSTACK_RULE_SP, 3, 1, 0);
	words[6] = 0;
	ck_assert_int_eq(step(), STEP_END);
}
END_TEST

/* Where no return slot can be. */
START_TEST(to_a_wrong_place)
{
	static const struct {
		int cfa, ra;
	} wrong[] = {{0, 0}, {-1, 0}, {0, 1}, {1, 2}};

	lay_out(INCSTACK_RULE_SP, wrong[_i].cfa, wrong[_i].ra, 0);
	ck_assert_int_eq(step(), STEP_WRONG);
	check_unchanged();
}
END_TEST

START_TEST(to_a_slot_between_words)
{
	lay_out(INCSTACK_RULE_SP, 3, 1, 0);
	rule.cfa_offset += 4;
	ck_assert_int_eq(step(), STEP_WRONG);
	lay_out(INCSTACK_RULE_SP, 1, 1, 0);
	ck_assert_int_eq(step(), STEP_FRAME); /* the first word of the frame */
	check(104, place(5), place(8));
}
END_TEST

/* A step that cannot read a word changes nothing. */
START_TEST(over_words_that_cannot_be_read)
{
	static const struct {
		uint32_t kind;
		int cfa, ra, fp, unreadable;
	} tries[] = {
		{INCSTACK_RULE_SP, 3, 1, 0, 6},
		{INCSTACK_RULE_SP, 3, 1, 2, 5},
		{INCSTACK_RULE_FP_DEREF, 1, 1, 0, 9},
		{INCSTACK_RULE_FP_DEREF, 1, 1, 0, 8},
		{INCSTACK_RULE_SIGNAL, 0, 0, 0, 4 + INCSTACK__SIGNAL_PC / SIZE},
		{INCSTACK_RULE_SIGNAL, 0, 0, 0, 4 + INCSTACK__SIGNAL_SP / SIZE},
		{INCSTACK_RULE_SIGNAL, 0, 0, 0, 4 + INCSTACK__SIGNAL_FP / SIZE},
	};

	lay_out(tries[_i].kind, tries[_i].cfa, tries[_i].ra, tries[_i].fp);
	words[9] = place(12);
	unreadable = tries[_i].unreadable;
	ck_assert_int_eq(step(), STEP_UNKNOWN);
	check_unchanged();
	unreadable = NOTHING;
	ck_assert_int_eq(step(), STEP_FRAME);
}
END_TEST

/* Below the frame there is no frame pointer: the interrupted function has restored it, others cannot
 * have. */
START_TEST(a_frame_pointer_below_the_frame)
{
	lay_out(INCSTACK_RULE_SP, 3, 1, 4);
	ck_assert_int_eq(step(), STEP_FRAME);
	check(106, place(7), place(8));
	lay_out(INCSTACK_RULE_SP, 3, 1, 4);
	at.exact = false;
	ck_assert_int_eq(step(), STEP_UNKNOWN);
	lay_out(INCSTACK_RULE_SP, 3, 1, 3);
	ck_assert_int_eq(step(), STEP_FRAME);
	check(106, place(7), 104);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("step");
	TCase *steps = tcase_create("steps");

	tcase_add_test(steps, to_the_caller);
	tcase_add_test(steps, to_what_a_signal_interrupted);
	tcase_add_test(steps, to_no_caller);
	tcase_add_loop_test(steps, to_a_wrong_place, 0, 4);
	tcase_add_test(steps, to_a_slot_between_words);
	tcase_add_loop_test(steps, over_words_that_cannot_be_read, 0, 7);
	tcase_add_test(steps, a_frame_pointer_below_the_frame);
	suite_add_tcase(suite, steps);
	return run_suite(suite);
}
