/* SPDX-License-Identifier: MIT
 *
 * Tests that a debug build checks the order of the recorder's locks. A lock taken in the wrong
 * order is noted, and so is a call that may wait for a foreign lock while a lock is held.
 */
#undef INCSTACK_DEBUG
#define INCSTACK_DEBUG 1
#include <semaphore.h>
#include <time.h>

#include "recorder/recording/lock.c"

#include "run_suite.h"

static int broken;

void incstack__record_note(enum incstack__tracefile_note note)
{
	broken += note == INCSTACK__NOTE_BROKEN;
}

static void begin(void)
{
	incstack__locks_make();
	broken = 0;
}

START_TEST(right_order)
{
	begin();
	incstack__lock_may_wait();
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	ck_assert(incstack__lock_take_after_fork(INCSTACK__LOCK_WALK));
	incstack__lock_take(INCSTACK__LOCK_SPOOL);
	incstack__lock_take(INCSTACK__LOCK_RECORDING); /* the thread holds it already */
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__lock_give(INCSTACK__LOCK_SPOOL);
	incstack__lock_give(INCSTACK__LOCK_WALK);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__lock_stopped(1);
	incstack__lock_stopped(-1);
	incstack__lock_may_wait();
	ck_assert_int_eq(broken, 0);
}
END_TEST

START_TEST(wrong_order)
{
	begin();
	incstack__lock_take(INCSTACK__LOCK_WALK);
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	ck_assert_int_eq(broken, 1);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__lock_give(INCSTACK__LOCK_WALK);
	ck_assert_int_eq(broken, 1);
#ifndef __SANITIZE_THREAD__ /* which ends the test by itself */
	incstack__lock_give(INCSTACK__LOCK_WALK);
	ck_assert_int_eq(broken, 2);
#endif
}
END_TEST

/* The last lock in the order: its holder takes no other one. */
START_TEST(a_lock_under_that_of_the_spool)
{
	begin();
	incstack__lock_take(INCSTACK__LOCK_SPOOL);
	ck_assert_int_eq(broken, 0);
	incstack__lock_take((enum incstack__lock)_i);
	ck_assert_int_eq(broken, 1);
	incstack__lock_give((enum incstack__lock)_i);
	incstack__lock_give(INCSTACK__LOCK_SPOOL);
	ck_assert_int_eq(broken, 1);
}
END_TEST

static sem_t forks, ends, ended;
static int naps;

/* A fork ends after a walk has waited ten times. */
void incstack__nap(long ns)
{
	(void)ns;
	if (++naps == 10) {
		sem_post(&ends);
		sem_wait(&ended);
	}
}

static void *fork_until_told(void *unused)
{
	incstack__lock_fork();
	sem_post(&forks);
	sem_wait(&ends);
	incstack__lock_forked();
	sem_post(&ended);
	return unused;
}

static pthread_t start_fork(void)
{
	pthread_t thread;

	sem_init(&forks, 0, 0);
	sem_init(&ends, 0, 0);
	sem_init(&ended, 0, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, fork_until_told, NULL), 0);
	sem_wait(&forks);
	return thread;
}

START_TEST(a_walk_waits_for_a_fork)
{
	pthread_t thread;

	begin();
	thread = start_fork();
	naps = 0;
	ck_assert(incstack__lock_take_after_fork(INCSTACK__LOCK_WALK));
	ck_assert_int_eq(naps, 10);
	incstack__lock_give(INCSTACK__LOCK_WALK);
	pthread_join(thread, NULL);
	ck_assert_int_eq(broken, 0);
}
END_TEST

/* The thread that forks waits for a thread that waits for it, but only once. The next fork is
 * another one. */
START_TEST(a_walk_gives_up_a_fork_that_does_not_end)
{
	pthread_t thread;

	begin();
	for (int times = 0; times < 2; times++) {
		thread = start_fork();
		naps = 10;
		ck_assert(!incstack__lock_take_after_fork(INCSTACK__LOCK_WALK));
		ck_assert_int_ge(naps, NAPS_MOST);
		naps = 10;
		ck_assert(!incstack__lock_take_after_fork(INCSTACK__LOCK_WALK));
		ck_assert_int_eq(naps, 10);
		sem_post(&ends);
		pthread_join(thread, NULL);
	}
	ck_assert(incstack__lock_take_after_fork(INCSTACK__LOCK_WALK));
	incstack__lock_give(INCSTACK__LOCK_WALK);
}
END_TEST

/* The thread that forked ends its fork in the parent. The child has none in progress. */
START_TEST(a_child_is_not_forking)
{
	begin();
	incstack__lock_fork();
	too_long = 1;
	incstack__locks_make();
	ck_assert_int_eq(is_forking(), 0);
	ck_assert_int_eq(too_long, 0);
	ck_assert(incstack__lock_take_after_fork(INCSTACK__LOCK_WALK));
	incstack__lock_give(INCSTACK__LOCK_WALK);
	ck_assert_int_eq(broken, 0);
}
END_TEST

START_TEST(waiting_with_a_lock)
{
	begin();
	incstack__lock_take(INCSTACK__LOCK_RECORDING);
	incstack__lock_may_wait();
	ck_assert_int_eq(broken, 1);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__lock_may_wait();
	ck_assert_int_eq(broken, 1);
}
END_TEST

START_TEST(waiting_while_a_thread_is_stopped)
{
	begin();
	incstack__lock_stopped(1);
	incstack__lock_may_wait();
	ck_assert_int_eq(broken, 1);
	incstack__lock_stopped(-1);
	incstack__lock_may_wait();
	ck_assert_int_eq(broken, 1);
}
END_TEST

static Suite *suite(void)
{
	Suite *suite = suite_create("lock order");
	TCase *order = tcase_create("order");

	tcase_add_test(order, right_order);
	tcase_add_test(order, wrong_order);
	tcase_add_loop_test(order, a_lock_under_that_of_the_spool, 0, INCSTACK__LOCK_SPOOL);
	tcase_add_test(order, a_walk_waits_for_a_fork);
	tcase_add_test(order, a_walk_gives_up_a_fork_that_does_not_end);
	tcase_add_test(order, a_child_is_not_forking);
	tcase_add_test(order, waiting_with_a_lock);
	tcase_add_test(order, waiting_while_a_thread_is_stopped);
	suite_add_tcase(suite, order);
	return suite;
}

int main(void)
{
	return run_suite(suite());
}
