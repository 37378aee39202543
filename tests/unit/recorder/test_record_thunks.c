/* SPDX-License-Identifier: MIT
 *
 * When the recorder makes thunks: never inside of an unwinder, and with the signals blocked. Without
 * the rest of the recorder and the core.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/events/thunks.c"

#include "run_suite.h"

enum { THUNK = 0x1000 };

static uintptr_t behind_thunk;
static int quiet;
static unsigned made;
static struct incstack__record record;

uintptr_t incstack_slot_read(const uintptr_t *slot)
{
	return *slot == THUNK ? behind_thunk : *slot;
}

void incstack__record_protect(struct incstack__protection *before)
{
	ck_assert_int_eq(quiet++, 0);
	before->signals = 77;
}

void incstack__record_unprotect(const struct incstack__protection *before)
{
	ck_assert_int_eq(--quiet, 0);
	ck_assert_uint_eq(before->signals, 77);
}

#ifdef INCSTACK_DEBUG
void incstack__lock_may_wait(void)
{
}
#endif

void incstack__pools_add(struct incstack_stack *stack)
{
	ck_assert_int_eq(quiet, 1);
	ck_assert_ptr_eq(stack, record.stack);
	made++;
}

static void make_for(uintptr_t pc)
{
	incstack__record_make_thunks(&record, (struct incstack__caller){&pc, 0});
	ck_assert_int_eq(quiet, 0);
}

START_TEST(only_outside_of_unwinders)
{
	const uintptr_t unwinder = (uintptr_t)_Unwind_Find_FDE;

	record.stack = (struct incstack_stack *)&record;
	make_for((uintptr_t)make_for + 4);
	ck_assert_uint_eq(made, 1);
	make_for((uintptr_t)memcpy + 4);
	ck_assert_uint_eq(made, 2);
	make_for(unwinder + 4);
	make_for(unwinder + 1); /* a return to behind a call that is its last instruction */
	ck_assert_uint_eq(made, 2);
	behind_thunk = unwinder + 4;
	make_for(THUNK);
	ck_assert_uint_eq(made, 2);
	behind_thunk = (uintptr_t)make_for + 4;
	make_for(THUNK);
	ck_assert_uint_eq(made, 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("thunks of the recorder");
	TCase *tests = tcase_create("thunks");

	tcase_add_test(tests, only_outside_of_unwinders);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
