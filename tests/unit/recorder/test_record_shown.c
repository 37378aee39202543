/* SPDX-License-Identifier: MIT
 *
 * Tests the recorder before the program looks at its own stack: which walks lift the barriers,
 * and which unwinders end mode patch; without the rest of the recorder.
 */
#include <check.h>
#include <string.h>

#include "recorder/events/shown.c"

#include "run_suite.h"

/* ---- in place of the core and of the rest of the recorder --------------------------------- */

enum { THUNK = 0x1000, REAL = 0x2000 };

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;
INCSTACK__TLS struct incstack__walker incstack__walker_first;
static struct incstack__record record;
static uintptr_t *barrier_at; /* the slot with a thunk */
static bool refuses;          /* a lift leaves the barrier there */
static uintptr_t unwinder;    /* an address that is known */
static unsigned lifts, asked, fall_backs;
static struct incstack__walker lifted; /* by which walk */

uintptr_t incstack_slot_read(const uintptr_t *slot)
{
	return *slot == THUNK ? REAL : *slot;
}

int incstack_unwinder_known(uintptr_t address)
{
	asked++;
	return address == unwinder;
}

void incstack__walker_lift(struct incstack__record *of, void *argument)
{
	ck_assert_ptr_eq(of, &record);
	lifts++;
	lifted = argument != NULL ? *(struct incstack__walker *)argument
				  : (struct incstack__walker){0};
	if (barrier_at != NULL && !refuses)
		*barrier_at = REAL;
}

void incstack__record_as_event(void (*function)(struct incstack__record *, void *), void *argument)
{
	function(incstack__record_local.mine, argument);
}

void incstack__record_fall_back(enum incstack__tracefile_note why)
{
	ck_assert_int_eq(why, INCSTACK__NOTE_FOREIGN_UNWINDER);
	fall_backs++;
}

static void begin(void)
{
	memset(&incstack__record_local, 0, sizeof(incstack__record_local));
	memset(&incstack__walker_first, 0, sizeof(incstack__walker_first));
	incstack__record_local.mine = &record;
	incstack__recording.on = 1;
	barrier_at = NULL;
	refuses = false;
	unwinder = 0;
	lifts = asked = fall_backs = 0;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* A thread that has a record lifts its barriers; one that has none remembers the walk. */
START_TEST(walks)
{
	uintptr_t slot = THUNK;

	begin();
	incstack__record_walk(&slot, 0);
	ck_assert_uint_eq(lifts, 1);
	ck_assert_ptr_eq(lifted.slot, &slot);
	ck_assert_uint_eq(lifted.word, REAL);
	incstack__record_walk(&slot, 1);
	ck_assert_uint_eq(lifts, 2);
	ck_assert_ptr_eq(lifted.slot, &slot);
	ck_assert_uint_eq(lifted.word, 0);
	ck_assert_ptr_null(incstack__walker_first.slot);
	incstack__recording.on = 0; /* a child that is not recorded */
	incstack__record_walk(&slot, 0);
	ck_assert_uint_eq(lifts, 2);
	ck_assert_ptr_null(incstack__walker_first.slot);
	incstack__record_local.mine = NULL;
	incstack__record_walk(&slot, 0);
	ck_assert_uint_eq(lifts, 2);
	ck_assert_ptr_eq(incstack__walker_first.slot, &slot);
	ck_assert_uint_eq(incstack__walker_first.word, REAL);
}
END_TEST

/* A word that the program reads is the real return address, whatever happened to its barrier. */
START_TEST(words)
{
	uintptr_t slot = REAL;

	begin();
	incstack__record_shown(&slot);
	ck_assert_uint_eq(lifts, 0);
	ck_assert_uint_eq(slot, REAL);
	slot = THUNK;
	barrier_at = &slot;
	incstack__record_shown(&slot);
	ck_assert_uint_eq(lifts, 1);
	ck_assert_ptr_null(lifted.slot);
	ck_assert_uint_eq(slot, REAL);
	slot = THUNK;
	refuses = true; /* on a signal stack or in a context: it is another record's barrier */
	incstack__record_shown(&slot);
	ck_assert_uint_eq(lifts, 2);
	ck_assert_uint_eq(slot, REAL);
	slot = THUNK;
	incstack__record_local.mine = NULL;
	incstack__record_shown(&slot);
	ck_assert_uint_eq(lifts, 2);
	ck_assert_uint_eq(slot, REAL);
	ck_assert_ptr_eq(incstack__record_real_address((const void *)THUNK), (const void *)REAL);
	ck_assert_ptr_eq(incstack__record_real_address(&slot), &slot);
}
END_TEST

/* An unwinder that knows the thunks' personality routine keeps the mode. Another does not. */
START_TEST(unwinders)
{
	const uintptr_t known = (uintptr_t)&memcpy, foreign = known + 1;

	begin();
	unwinder = known;
	incstack__record_lookup((uintptr_t)begin, 1); /* the recorder itself */
	incstack__record_lookup((uintptr_t)__ehdr_start, 1);
	ck_assert_uint_eq(asked, 0);
	incstack__record_local.state = INCSTACK__INSIDE;
	incstack__record_lookup(foreign, 1);
	incstack__record_local.state = 0;
	ck_assert_uint_eq(asked + lifts + fall_backs, 0);

	incstack__record_lookup(known, 0); /* this answer may change */
	incstack__record_lookup(known, 0);
	ck_assert_uint_eq(asked, 2);
	incstack__record_lookup(known, 1);
	incstack__record_lookup(known, 1);
	incstack__record_lookup(known, 0);
	ck_assert_uint_eq(asked, 3);
	ck_assert_uint_eq(lifts + fall_backs, 0);

	incstack__record_lookup(foreign, 0);
	ck_assert_uint_eq(lifts, 1);
	ck_assert_uint_eq(fall_backs, 0);
	ck_assert_ptr_null(lifted.slot);
	incstack__record_lookup(foreign, 1);
	ck_assert_uint_eq(lifts, 2);
	ck_assert_uint_eq(fall_backs, 1);
	incstack__record_local.mine = NULL;
	incstack__record_lookup(foreign, 1);
	ck_assert_uint_eq(lifts, 2);
	ck_assert_uint_eq(fall_backs, 2);
	incstack__record_lookup((uintptr_t)_end, 0); /* the first byte behind the recorder */
	ck_assert_uint_eq(asked, 7);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("what the program is shown");
	TCase *tests = tcase_create("shown");

	tcase_add_test(tests, walks);
	tcase_add_test(tests, words);
	tcase_add_test(tests, unwinders);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
