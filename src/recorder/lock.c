/* SPDX-License-Identifier: MIT
 *
 * The recorder's locks, and in debug builds the order in which they are taken.
 */
#include "lock.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "recorder.h"

static pthread_mutex_t locks[INCSTACK__LOCKS];
static int forking;  /* threads that are forking */
static int too_long; /* a fork has taken too long: no thread waits for it any more */

enum { NAPS_MOST = 500 }; /* each at least 20 us */

#ifdef INCSTACK_DEBUG

static INCSTACK__TLS struct {
	int taken[INCSTACK__LOCKS]; /* how often this thread has taken each lock */
	int stopped;                /* threads that this thread has stopped */
} mine;

static void expect(int holds)
{
	if (!holds)
		incstack__record_note(INCSTACK__NOTE_BROKEN);
}

static void note_taken(enum incstack__lock lock)
{
	for (int later = (int)lock + 1; later < INCSTACK__LOCKS; later++)
		expect(mine.taken[later] == 0 || mine.taken[lock] != 0);
	mine.taken[lock]++;
}

static void note_given(enum incstack__lock lock)
{
	mine.taken[lock]--;
	expect(mine.taken[lock] >= 0);
}

static void note_made(void)
{
	memset(&mine, 0, sizeof(mine));
}

void incstack__lock_may_wait(void)
{
	for (int lock = 0; lock < INCSTACK__LOCKS; lock++)
		expect(mine.taken[lock] == 0);
	expect(mine.stopped == 0);
}

void incstack__lock_stopped(int more)
{
	mine.stopped += more;
	expect(mine.stopped >= 0);
}

#else

static inline void note_taken(enum incstack__lock lock)
{
	(void)lock;
}

static inline void note_given(enum incstack__lock lock)
{
	(void)lock;
}

static inline void note_made(void)
{
}

#endif

void incstack__lock_take(enum incstack__lock lock)
{
	note_taken(lock);
	pthread_mutex_lock(&locks[lock]);
}

int incstack__lock_try(enum incstack__lock lock)
{
	if (pthread_mutex_trylock(&locks[lock]) != 0)
		return -1;
	note_taken(lock);
	return 0;
}

static int is_forking(void)
{
	return __atomic_load_n(&forking, __ATOMIC_SEQ_CST) != 0;
}

static void nap(void)
{
	incstack__nap(20000);
}

int incstack__lock_take_after_fork(enum incstack__lock lock)
{
	int naps = 0;

	while (incstack__lock_try(lock) != 0) {
		if (is_forking() && ++naps >= NAPS_MOST)
			__atomic_store_n(&too_long, 1, __ATOMIC_RELAXED);
		if (is_forking() && __atomic_load_n(&too_long, __ATOMIC_RELAXED))
			return -1;
		nap();
	}
	return 0;
}

void incstack__lock_fork(void)
{
	incstack__lock_may_wait();
	__atomic_add_fetch(&forking, 1, __ATOMIC_SEQ_CST);
	incstack__lock_take(INCSTACK__LOCK_MODULES);
	incstack__lock_take(INCSTACK__LOCK_WALK);
}

void incstack__lock_forked(void)
{
	incstack__lock_give(INCSTACK__LOCK_WALK);
	incstack__lock_give(INCSTACK__LOCK_MODULES);
	if (__atomic_sub_fetch(&forking, 1, __ATOMIC_SEQ_CST) == 0)
		__atomic_store_n(&too_long, 0, __ATOMIC_RELAXED);
}

void incstack__lock_give(enum incstack__lock lock)
{
	note_given(lock);
	pthread_mutex_unlock(&locks[lock]);
}

/* The locks store their owner's thread number, which the child's thread does not have. So a child
 * cannot unlock them but must make new ones. */
int incstack__locks_make(void)
{
	pthread_mutexattr_t recursive;

	note_made();
	forking = too_long = 0;
	if (pthread_mutexattr_init(&recursive) != 0 ||
	    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE) != 0)
		return -1;
	for (int lock = 0; lock < INCSTACK__LOCKS; lock++)
		if (pthread_mutex_init(&locks[lock], &recursive) != 0)
			return -1;
	return 0;
}
