/* SPDX-License-Identifier: MIT
 *
 * Positions of compiled code: what is found is what was kept for that address and that code, also while
 * other threads write to the same places.
 */
#include <pthread.h>
#include <stdbool.h>

#include "../positions.h"
#include "run_suite.h"

enum { ADDRESSES = 61, ROUNDS = 1000000, THREADS = 4 };

static struct incstack__positions table;

/* Each position has frames that follow from it, so that a mixture of two is noticed. */
static int frames_of(uintptr_t pc, uint64_t code, struct incstack_virtual_frame *out)
{
	int count = (int)((pc + code) % INCSTACK__POSITION_FRAMES) + 1;
	for (int i = 0; i < count; i++)
		out[i] = (struct incstack_virtual_frame){
			.function = pc * 1000003 + code * 8191 + (uint64_t)i,
			.position = (int32_t)(pc + 31 * code + (uint64_t)i) - 1};
	return count;
}

/* Returns how many frames are found; -1 if they are not those of the position. */
static int find(uintptr_t pc, uint64_t code)
{
	struct incstack_virtual_frame found[INCSTACK__POSITION_FRAMES + 1],
		expected[INCSTACK__POSITION_FRAMES];
	int n = incstack__positions_find(&table, pc, code, found);
	if (n == 0)
		return 0;
	if (n != frames_of(pc, code, expected))
		return -1;
	for (int i = 0; i < n; i++)
		if (found[i].function != expected[i].function ||
		    found[i].position != expected[i].position)
			return -1;
	return n;
}

static void keep(uintptr_t pc, uint64_t code)
{
	struct incstack_virtual_frame frames[INCSTACK__POSITION_FRAMES];
	int count = frames_of(pc, code, frames);
	incstack__positions_keep(&table, pc, code, frames, count);
}

START_TEST(what_was_kept_is_found)
{
	ck_assert_int_eq(find(0, 0), 0); /* nothing was kept yet */
	for (uintptr_t pc = 4096; pc < 4096 + ADDRESSES; pc++) {
		keep(pc, 5);
		ck_assert_int_gt(find(pc, 5), 0);
	}
}
END_TEST

START_TEST(other_code_at_the_address_is_not_taken_for_it)
{
	keep(77, 5);
	ck_assert_int_eq(find(77, 6), 0);
	ck_assert_int_eq(find(78, 5), 0);
	keep(77, 6);
	ck_assert_int_gt(find(77, 6), 0);
	ck_assert_int_eq(find(77, 5), 0);
}
END_TEST

START_TEST(too_many_frames_or_none_are_not_kept)
{
	struct incstack_virtual_frame many[INCSTACK__POSITION_FRAMES + 1] = {{0}};
	incstack__positions_keep(&table, 9, 9, many, INCSTACK__POSITION_FRAMES + 1);
	incstack__positions_keep(&table, 9, 9, many, 0);
	ck_assert_int_eq(find(9, 9), 0);
}
END_TEST

START_TEST(a_place_that_is_being_written_is_left_alone)
{
	struct incstack__position *p = NULL;
	keep(1234, 5);
	for (int i = 0; i < INCSTACK__POSITIONS; i++)
		if (table.places[i].pc == 1234 && table.places[i].version)
			p = &table.places[i];
	ck_assert_ptr_nonnull(p);
	p->version++;
	ck_assert_int_eq(find(1234, 5), 0);
	keep(1234, 6);
	ck_assert_uint_eq(p->code, 5);
	p->version++;
	ck_assert_int_gt(find(1234, 5), 0);
}
END_TEST

static uint64_t found, wrong;

/* Few addresses and much code: all threads use the same places. */
static void *work(void *argument)
{
	uint64_t at = (uint64_t)(uintptr_t)argument, right = 0, mixed = 0;
	bool writes = at & 1;
	for (int i = 0; i < ROUNDS; i++) {
		at = at * UINT64_C(6364136223846793005) + 1442695040888963407;
		uintptr_t pc = at >> 33 & 1;
		uint64_t code = at >> 40 & 3;
		int n = writes ? 0 : find(pc, code);
		right += n > 0;
		mixed += n < 0;
		if (writes)
			keep(pc, code);
	}
	__atomic_fetch_add(&found, right, __ATOMIC_RELAXED);
	__atomic_fetch_add(&wrong, mixed, __ATOMIC_RELAXED);
	return NULL;
}

START_TEST(threads_never_find_a_mixture)
{
	pthread_t threads[THREADS];
	keep(0, 0); /* those that only read may come to their end first */
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_gt(found, 0);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("positions");
	TCase *tc = tcase_create("positions");
	tcase_add_test(tc, what_was_kept_is_found);
	tcase_add_test(tc, other_code_at_the_address_is_not_taken_for_it);
	tcase_add_test(tc, too_many_frames_or_none_are_not_kept);
	tcase_add_test(tc, a_place_that_is_being_written_is_left_alone);
	tcase_add_test(tc, threads_never_find_a_mixture);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
