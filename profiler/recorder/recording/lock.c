/* SPDX-License-Identifier: MIT
 *
 * The recorder's locks, and in debug builds the order in which they are taken.
 */
#include "lock.h"

#include <stdatomic.h>
#include <linux/futex.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "recorder/system/kernel.h"
#include "recorder/recording/recording.h"
#include "recorder/system/system.h"

/* Not libc's mutex, because a library of the program may replace the mutex functions (kernel.h). */
static struct lock {
	_Atomic uint32_t state;
	uint32_t depth; /* how often the owner has taken the lock */
	_Atomic uintptr_t owner;
} locks[INCSTACK__LOCKS];
enum { FREE, TAKEN, AWAITED };

static _Atomic int forking;   /* threads that are forking */
static _Atomic bool too_long; /* a fork has taken too long, so no thread waits for it */

enum { NAPS_MOST = 500 }; /* each at least 20 us */

#ifdef INCSTACK_DEBUG

static INCSTACK__TLS struct {
	int taken[INCSTACK__LOCKS]; /* how often this thread has taken each lock */
	int stopped;                /* threads that this thread has stopped */
} mine;

static void expect(bool holds)
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

static uintptr_t self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

static void own(struct lock *lock)
{
	atomic_store_explicit(&lock->owner, self(), memory_order_relaxed);
	lock->depth = 1;
}

/* Only the owner itself can find itself there. */
static bool take_if_free(struct lock *lock)
{
	uint32_t state = FREE;

	if (atomic_load_explicit(&lock->owner, memory_order_relaxed) == self()) {
		lock->depth++;
		return true;
	}
	if (!atomic_compare_exchange_strong_explicit(&lock->state, &state, TAKEN,
						     memory_order_acquire, memory_order_relaxed))
		return false;
	own(lock);
	return true;
}

/* Marks the lock as awaited, also when it takes the lock, because others may still wait. */
static void take(struct lock *lock)
{
	if (take_if_free(lock))
		return;
	while (atomic_exchange_explicit(&lock->state, AWAITED, memory_order_acquire) != FREE)
		incstack__system_call(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, AWAITED, NULL);
	own(lock);
}

static void give(struct lock *lock)
{
	if (--lock->depth != 0)
		return;
	atomic_store_explicit(&lock->owner, 0, memory_order_relaxed);
	if (atomic_exchange_explicit(&lock->state, FREE, memory_order_release) == AWAITED)
		incstack__system_call(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1);
}

void incstack__lock_take(enum incstack__lock lock)
{
	note_taken(lock);
	take(&locks[lock]);
}

bool incstack__lock_try(enum incstack__lock lock)
{
	if (!take_if_free(&locks[lock]))
		return false;
	note_taken(lock);
	return true;
}

static bool is_forking(void)
{
	return atomic_load_explicit(&forking, memory_order_seq_cst) != 0;
}

static void nap(void)
{
	incstack__nap(20000);
}

bool incstack__lock_take_after_fork(enum incstack__lock lock)
{
	int naps = 0;

	while (!incstack__lock_try(lock)) {
		if (is_forking() && ++naps >= NAPS_MOST)
			atomic_store_explicit(&too_long, true, memory_order_relaxed);
		if (is_forking() && atomic_load_explicit(&too_long, memory_order_relaxed))
			return false;
		nap();
	}
	return true;
}

void incstack__lock_fork(void)
{
	incstack__lock_may_wait();
	atomic_fetch_add_explicit(&forking, 1, memory_order_seq_cst);
	incstack__lock_take(INCSTACK__LOCK_MODULES);
	incstack__lock_take(INCSTACK__LOCK_WALK);
}

void incstack__lock_forked(void)
{
	incstack__lock_give(INCSTACK__LOCK_WALK);
	incstack__lock_give(INCSTACK__LOCK_MODULES);
	if (atomic_fetch_sub_explicit(&forking, 1, memory_order_seq_cst) - 1 == 0)
		atomic_store_explicit(&too_long, false, memory_order_relaxed);
}

void incstack__lock_give(enum incstack__lock lock)
{
	note_given(lock);
	give(&locks[lock]);
}

/* Threads of the parent may have held the locks, so the locks are made anew. */
void incstack__locks_make(void)
{
	note_made();
	forking = 0;
	too_long = false;
	memset(locks, 0, sizeof(locks));
}
