/* SPDX-License-Identifier: MIT
 *
 * The recorder's locks, in the order in which a thread may take them, and the calls that
 * may wait for a lock of somebody else's (docs/invariants.md, "Locks"). Debug builds check
 * the order and leave a note in the trace file where it is broken; others do not look.
 */
#ifndef INCSTACK_RECORDER_LOCK_H
#define INCSTACK_RECORDER_LOCK_H

enum incstack__lock {
	INCSTACK__LOCK_RECORDING, /* the lists of records, the shared record, contexts, modules */
	INCSTACK__LOCK_MODULES,   /* recorder_unload.c */
	INCSTACK__LOCK_WALK,      /* libunwind, which only --crosscheck calls */
	INCSTACK__LOCK_SPOOL,     /* the spool's lists of free memory: recorder_spool.c */
	INCSTACK__LOCKS,
};

/* A thread may take one again that it has, and none that comes before one that it has. */
void incstack__lock_take(enum incstack__lock lock);
/* Not 0: another thread has it, and a thread forks, which may wait for this one. */
int incstack__lock_take_unless_forking(enum incstack__lock lock);
/* The same, but waits a while for the fork, once. */
int incstack__lock_take_after_fork(enum incstack__lock lock);
void incstack__lock_give(enum incstack__lock lock);
/* Around fork, in the thread that forks: until libc has forked, it has the locks under which
 * a child could not go on. libc takes locks of its own meanwhile. */
void incstack__lock_fork(void);
void incstack__lock_forked(void);
/* At the start, and in the child of fork, where nobody else is left who could hold one. Not
 * 0: it failed. */
int incstack__locks_make(void);

#ifdef INCSTACK_DEBUG
/* Before a call that may wait for a lock of libc, of the dynamic linker or of an unwinder. */
void incstack__lock_may_wait(void);
/* The calling thread has stopped another one, or released it (-1). */
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
