/* SPDX-License-Identifier: MIT
 *
 * The threads and contexts of the process: which records they have, how others write these, and what
 * a fork, an exec, an exit, a sandbox and a walk of the program do to them.
 */
#ifndef INCSTACK_RECORDER_THREADS_H
#define INCSTACK_RECORDER_THREADS_H

#include "recorder/log/log.h"
#include "interpose/preload.h"

/* thread.c */
int incstack__record_keys(void);
struct incstack__record *incstack__record_make(void);
/* Called before and after a thread makes system calls while its record is not in the list. The
 * first returns false if the program is about to forbid such calls. The third waits until no thread
 * makes them, or for some seconds. */
bool incstack__record_begin_unlisted(void);
void incstack__record_end_unlisted(void);
void incstack__record_await_unlisted(void);
/* Returns the thread's record. Null: the thread has given it up, or there was no memory for it. */
static inline struct incstack__record *incstack__record_self(void)
{
	struct incstack__record *mine = incstack__record_local.mine;

	return mine ? mine : incstack__record_make();
}
/* In a child: the calling thread no longer has a record. */
void incstack__record_forked(void);

/* gone.c */
bool incstack__record_is_gone(const struct incstack__record *record);
/* Writes what a thread that is gone has recorded. */
void incstack__record_write_gone(struct incstack__record *record);
/* Called before a thread is recorded: now and then releases the records of threads that are
 * gone. */
void incstack__record_release_gone(void);

/* context.c */
/* Returns the record of the context whose stack contains the address, or null. The calling
 * thread owns its stack from now on. */
struct incstack__record *incstack__record_context(uintptr_t at);
void incstack__record_context_leave(uintptr_t at, bool by_jump);
void incstack__record_context_enter(const void *ucontext);
/* Writes the contexts that ran last on the thread. The thread is the caller, or is held, or is
 * gone. `at` is its stack pointer, or 0 if it is gone. If it is held, it was interrupted at
 * `held`. */
void incstack__record_contexts_flush(pid_t tid, uintptr_t at, const struct incstack_top *held,
				     bool last);
void incstack__record_contexts_flush_rest(bool last);

/* walker.c */
/* A walk of the program: the walker's return slot, or a slot below it. */
struct incstack__walker {
	uintptr_t *slot;
	uintptr_t word; /* the content of the slot; 0: the walker is the caller */
};
/* The walk that a thread without a record has begun. The thread gets no record then, because that
 * may allocate, and the walker may be a signal handler that has interrupted the allocator. */
extern INCSTACK__TLS struct incstack__walker incstack__walker_first;
/* Completes the open traces and lifts the barriers. `argument` is the walk, or null. */
void incstack__walker_lift(struct incstack__record *record, void *argument);
/* Called for a new record, because its thread may be walking its stack already. */
void incstack__record_walk_begun(struct incstack__record *record);
/* If the walk has ended, barriers are planted again. */
void incstack__record_walk_end(struct incstack__record *record);

/* fork.c */
/* `begin_again` starts recording in a child, with the parent's configuration and findings. */
int incstack__record_watch_forks(void (*begin_again)(const struct incstack__recording *));
/* In a child whose fork interrupted an event: starts recording if that event is over by now.
 * Returns true if the child is recorded from now on. */
bool incstack__record_begin_late(void);
/* The embedder's allocate and release, of memory that a fork wipes. */
void *incstack__wiped_allocate(void *context, size_t bytes);
void incstack__wiped_release(void *context, void *memory, size_t bytes);

/* exit.c: writes the records of all threads that can be held. */
void incstack__record_flush_all(uint32_t flags);
void incstack__record_exec(void);
void incstack__record_exit(void);

/* sandbox.c */
void incstack__record_forbid(enum incstack__forbidden what, const void *filter);

#endif
