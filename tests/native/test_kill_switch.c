/* SPDX-License-Identifier: MIT
 *
 * Tests that INCSTACK_MODE can restrict the mode that a program asked for, and never extends it.
 */
#include "native/native.h"
#include "../unit/run_suite.h"
#include "checked.h"

static struct incstack_stack *stack;

static OPAQUE void calls(int depth)
{
	if (depth > 0)
		calls(depth - 1);
	ck_assert_int_eq(sample_checked(stack), 0);
	__asm__ volatile("" ::: "memory");
}

static const struct {
	const char *value; /* null: not set */
	uint32_t wanted, got;
} cases[] = {
	{NULL, INCSTACK_MODE_PATCH, INCSTACK_MODE_PATCH},
	{"", INCSTACK_MODE_PATCH, INCSTACK_MODE_PATCH},
	{"patch", INCSTACK_MODE_PATCH, INCSTACK_MODE_PATCH},
	{"patch", INCSTACK_MODE_VALIDATE, INCSTACK_MODE_VALIDATE},
	{"patch", INCSTACK_MODE_FULL, INCSTACK_MODE_FULL},
	{"validate", INCSTACK_MODE_PATCH, INCSTACK_MODE_VALIDATE},
	{"validate", INCSTACK_MODE_VALIDATE, INCSTACK_MODE_VALIDATE},
	{"validate", INCSTACK_MODE_FULL, INCSTACK_MODE_FULL},
	{"full", INCSTACK_MODE_PATCH, INCSTACK_MODE_FULL},
	{"full", INCSTACK_MODE_VALIDATE, INCSTACK_MODE_FULL},
	{"off", INCSTACK_MODE_PATCH, INCSTACK_MODE_FULL},
};

START_TEST(takes_away)
{
	if (cases[_i].value)
		ck_assert_int_eq(setenv("INCSTACK_MODE", cases[_i].value, 1), 0);
	else
		ck_assert_int_eq(unsetenv("INCSTACK_MODE"), 0);
	ck_assert_uint_eq(incstack__native_mode(cases[_i].wanted), cases[_i].got);
	checked_open(cases[_i].wanted, 0);
	stack = checked_thread();
	/* Hardware with shadow stacks forbids more. */
	ck_assert_uint_ge(checked_stats(stack).mode, cases[_i].got);
	for (int i = 0; i < 20; i++)
		calls(8);
	ck_assert_uint_eq(compare_all(stack), 0);
	ck_assert_int_eq(checked_stats(stack).returns > 0,
			 checked_stats(stack).mode == INCSTACK_MODE_PATCH);
	checked_close(stack);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kill switch");
	TCase *tc = tcase_create("kill switch");

	tcase_add_loop_test(tc, takes_away, 0, sizeof(cases) / sizeof(cases[0]));
	suite_add_tcase(s, tc);
	return run_suite(s);
}
