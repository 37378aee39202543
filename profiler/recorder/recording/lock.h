/* SPDX-License-Identifier: MIT
 *
 * The recorder's locks, in the order in which a thread may take them, and the calls that may wait
 * for a foreign lock (L1 to L16 in docs/invariants.md). Debug builds check the order and leave a
 * note in the trace file if a thread violates it. Other builds do not check.
 */
#ifndef INCSTACK_RECORDER_LOCK_H
#define INCSTACK_RECORDER_LOCK_H

#include <stdbool.h>

enum incstack__lock {
	INCSTACK__LOCK_RECORDING, /* the lists of records, the shared record, contexts, modules */
	INCSTACK__LOCK_MODULES,   /* unload.c */
	INCSTACK__LOCK_WALK,      /* libunwind, which only --crosscheck calls */
	INCSTACK__LOCK_SPOOL,     /* the spool's lists of free memory: spool.c */
	INCSTACK__LOCK_PIECES,    /* the list of memory that a fork wipes: fork.c */
	INCSTACK__LOCKS,
};

/* Takes a lock. A thread may take a lock again that it holds. It must not take a lock that comes
 * earlier in the order than a lock that it holds, unless it already holds the earlier lock (L1). */
void incstack__lock_take(enum incstack__lock lock);
/* Takes a lock. Returns false if another thread has it and a fork takes too long, because the
 * fork may wait for the caller. From then until the fork has ended, no thread waits. */
bool incstack__lock_take_after_fork(enum incstack__lock lock);
/* Takes a lock if no other thread has it; returns false otherwise. */
bool incstack__lock_try(enum incstack__lock lock);
void incstack__lock_give(enum incstack__lock lock);
/* Called around fork, in the thread that forks. Until libc has forked, the thread holds the locks
 * whose data a child could not use if they were half changed. libc takes locks of its own in
 * the meantime. */
void incstack__lock_fork(void);
void incstack__lock_forked(void);
/* Makes the locks, at the start and in the child of fork, in which no other thread exists. */
void incstack__locks_make(void);

#ifdef INCSTACK_DEBUG
/* Checks the caller, which is about to make a call that may wait for a lock of libc, of the dynamic
 * linker or of an unwinder. */
void incstack__lock_may_wait(void);
/* The calling thread has stopped another thread, or released it (-1). */
void incstack__lock_stopped(int more);
#else
static inline void incstack__lock_may_wait(void)
{
}
static inline void incstack__lock_stopped(int more)
{
	(void)more;
}
#endif

#endif
