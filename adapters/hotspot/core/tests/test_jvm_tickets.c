/* SPDX-License-Identifier: MIT
 *
 * Tickets of requests: threads draw them at once, and never more than there are.
 */
#include <pthread.h>
#include <stdbool.h>

#include "../tickets.h"
#include "run_suite.h"

enum { THREADS = 4, ROUNDS = 20000, TICKETS = 7 };

static struct incstack__tickets tickets;
static uint64_t drawn[ROUNDS + 1];
static bool stop;

/* Opens a request for n samples. Returns its place, or -1. */
static int open_one(struct incstack__tickets *t, const struct incstack__request *r, uint32_t n)
{
	uint64_t left;
	int place = incstack__tickets_find(t, &left);
	if (place >= 0)
		incstack__tickets_open(t, (uint32_t)place, r, n);
	return place;
}

/* Draws from all places, and notes for which request. */
static void *draw(void *argument)
{
	(void)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		for (uint32_t i = 0; i < INCSTACK__REQUESTS; i++) {
			const struct incstack__request *r = incstack__tickets_draw(&tickets, i);
			if (!r)
				continue;
			__atomic_fetch_add(&drawn[r->id], 1, __ATOMIC_RELAXED);
			incstack__tickets_taken(&tickets, i);
		}
	}
	return NULL;
}

START_TEST(no_more_samples_than_tickets)
{
	pthread_t threads[THREADS];
	uint64_t sum = 0;
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, draw, NULL), 0);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		struct incstack__request r = {.id = i};
		incstack__tickets_close_due(&tickets, 1);
		while (open_one(&tickets, &r, TICKETS) < 0)
			;
	}
	incstack__tickets_close_due(&tickets, 1);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i <= ROUNDS; i++) {
		ck_assert_uint_le(drawn[i], TICKETS);
		sum += drawn[i];
	}
	ck_assert_uint_eq(drawn[0], 0);
	ck_assert_uint_eq(sum + tickets.lost_closed, (uint64_t)ROUNDS * TICKETS);
}
END_TEST

START_TEST(a_place_is_not_used_again_before_its_samples_ended)
{
	struct incstack__tickets t = {.open = 0};
	struct incstack__request r = {.id = 5};
	ck_assert_int_eq(open_one(&t, &r, 2), 0);
	const struct incstack__request *mine = incstack__tickets_draw(&t, 0);
	ck_assert_uint_eq(incstack__tickets_left(&t, 0), 2);
	incstack__tickets_close(&t, 0);
	ck_assert_uint_eq(t.lost_closed, 1);
	ck_assert_ptr_null(incstack__tickets_draw(&t, 0));
	r.id = 6;
	for (int i = 1; i < INCSTACK__REQUESTS; i++)
		ck_assert_int_eq(open_one(&t, &r, 1), i);
	ck_assert_int_eq(open_one(&t, &r, 1), -1);
	ck_assert_uint_eq(mine->id, 5);
	incstack__tickets_taken(&t, 0);
	ck_assert_int_eq(open_one(&t, &r, 1), 0);
}
END_TEST

/* A thread that was asked in vain keeps the bit. It must be cleared before its place is used again, and
 * no bit of a request that is open may be. */
START_TEST(bits_are_cleared_before_their_place_is_used_again)
{
	struct incstack__tickets t = {.open = 0};
	struct incstack__request lasting = {.id = 1, .deadline = UINT64_MAX}, r = {.id = 2};
	uint64_t left, words = 0, whole_rounds = 0;
	ck_assert_int_eq(open_one(&t, &lasting, 1), 0);
	words |= 1;
	for (int i = 0; i < 5 * INCSTACK__REQUESTS; i++) {
		incstack__tickets_close_due(&t, 1);
		int place = incstack__tickets_find(&t, &left);
		ck_assert_int_gt(place, 0);
		ck_assert(!(left & 1));
		whole_rounds += left != 0;
		words &= ~left;
		ck_assert(!(words >> place & 1));
		incstack__tickets_open(&t, (uint32_t)place, &r, 1);
		words |= UINT64_C(1) << place;
	}
	ck_assert_uint_eq(whole_rounds, 5);
}
END_TEST

START_TEST(deadlines_and_the_limit)
{
	struct incstack__tickets t = {.open = 0};
	struct incstack__request r = {.id = 1, .deadline = 100};
	for (int i = 0; i < INCSTACK__REQUESTS; i++)
		ck_assert_int_eq(open_one(&t, &r, 1), i);
	ck_assert_int_eq(open_one(&t, &r, 1), -1);
	incstack__tickets_close_due(&t, 99);
	ck_assert_uint_eq(t.lost_closed, 0);
	incstack__tickets_close_due(&t, 100);
	ck_assert_uint_eq(t.lost_closed, INCSTACK__REQUESTS);
	ck_assert_uint_eq(t.open, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tickets");
	TCase *tc = tcase_create("tickets");
	tcase_add_test(tc, no_more_samples_than_tickets);
	tcase_add_test(tc, a_place_is_not_used_again_before_its_samples_ended);
	tcase_add_test(tc, bits_are_cleared_before_their_place_is_used_again);
	tcase_add_test(tc, deadlines_and_the_limit);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
