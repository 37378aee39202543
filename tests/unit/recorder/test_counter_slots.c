/* SPDX-License-Identifier: MIT
 *
 * Tests the counter slots of threads that come and go. A living thread has a slot of its own as
 * long as there are enough, and the counts of an ended thread are kept.
 */
#include "recorder/output/slot.c"

#include "run_suite.h"

enum { OWN = INCSTACK__TRACEFILE_SLOTS - 2, EVER = 100000 };

struct incstack__recording incstack__recording;
static struct incstack__tracefile_slot slots[INCSTACK__TRACEFILE_SLOTS];

static void begin(void)
{
	memset(&incstack__recording, 0, sizeof(incstack__recording));
	memset(slots, 0, sizeof(slots));
	incstack__recording.slots = slots;
}

static struct incstack__tracefile_slot *take_and_count(void)
{
	struct incstack__tracefile_slot *slot = incstack__slot_take();

	slot->samples_started++;
	return slot;
}

static uint64_t counted(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < INCSTACK__TRACEFILE_SLOTS; i++)
		sum += slots[i].samples_started;
	return sum;
}

START_TEST(one_after_another)
{
	begin();
	for (int i = 0; i < EVER; i++) {
		struct incstack__tracefile_slot *slot = take_and_count();

		ck_assert_int_eq(incstack__slot_is_shared(slot), 0);
		incstack__slot_give(slot);
	}
	ck_assert_uint_eq(counted(), EVER);
	ck_assert_uint_eq(slots[0].samples_started, 0);
}
END_TEST

START_TEST(all_at_once)
{
	struct incstack__tracefile_slot *shared;
	struct incstack__tracefile_slot *given;

	begin();
	for (int i = 0; i < OWN; i++)
		ck_assert_int_eq(incstack__slot_is_shared(take_and_count()), 0);
	for (unsigned i = 1; i <= OWN; i++) /* no two threads have the same one */
		ck_assert_uint_eq(slots[i].samples_started, 1);
	shared = take_and_count();
	ck_assert_ptr_eq(shared, &slots[INCSTACK__TRACEFILE_SLOTS - 1]);
	ck_assert_int_eq(incstack__slot_is_shared(shared), 1);
	ck_assert_ptr_eq(take_and_count(), shared);
	incstack__slot_give(shared);
	ck_assert_ptr_eq(take_and_count(), shared);
	given = &slots[700];
	incstack__slot_give(given);
	ck_assert_ptr_eq(take_and_count(), given);
	ck_assert_ptr_eq(take_and_count(), shared);
	ck_assert_uint_eq(counted(), OWN + 5);
}
END_TEST

START_TEST(the_first)
{
	begin();
	ck_assert_int_eq(incstack__slot_is_shared(&slots[0]), 1);
	incstack__slot_give(&slots[0]);
	incstack__slot_give(NULL); /* of a record that could not be made */
	ck_assert_ptr_eq(take_and_count(), &slots[1]);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("counter slots");
	TCase *t = tcase_create("counter slots");

	tcase_add_test(t, one_after_another);
	tcase_add_test(t, all_at_once);
	tcase_add_test(t, the_first);
	suite_add_tcase(suite, t);
	return suite;
}

int main(void)
{
	return run_suite(suite());
}
