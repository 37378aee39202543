/* SPDX-License-Identifier: MIT
 *
 * The recording of the process, the state of the calling thread, notes for the report, and how a
 * part of the recorder is protected.
 */
#ifndef INCSTACK_RECORDER_RECORDING_H
#define INCSTACK_RECORDER_RECORDING_H

#include <stdatomic.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <incstack/incstack.h>

#include "kind.h"
#include "lock.h"
#include "tracefile/format.h"
#include "tracefile/notes.h"

#define INCSTACK__TLS __thread __attribute__((tls_model("initial-exec")))

struct incstack__record;

/* The recording of the process. It fills whole pages, which a fork wipes, so nothing is recorded
 * in a child whose fork was not announced. The three lists are under LOCK_RECORDING.
 *
 * The partners of its atomics: An addition to `changes` is a release, made after the member that
 * changed was stored. The slow path (incstack__record_make_room) loads `changes` with acquire
 * and so sees that member. The fast path's load is relaxed, because a changed value only leads
 * to the slow path. A store to `epoch` is a release; whoever loads the new epoch with acquire
 * also sees that the old rules are forgotten. */
struct incstack__recording {
	struct incstack_runtime *runtime;
	struct incstack__record *_Atomic threads;
	struct incstack__record *shared_record; /* see struct incstack__record */
	struct incstack__record *_Atomic contexts;
	struct incstack__tracefile_slot *slots;
	_Atomic uint64_t slots_taken[INCSTACK__TRACEFILE_SLOTS / 64]; /* slot.c */
	uint64_t interval; /* bytes, or of a CPU profile nanoseconds */
	uint64_t seed;     /* of the choice of samples; 0: each thread has its own seed */
	bool elapsed;      /* tests: timers count elapsed time, also of sleeping threads */
	/* What the user wants to make the ticks of a CPU profile. */
	enum incstack__ticks_wanted {
		INCSTACK__TICKS_OF_ANY,
		INCSTACK__TICKS_OF_TIMERS,
		INCSTACK__TICKS_OF_EVENTS
	} ticks;
	_Atomic uint32_t mode;
	_Atomic uint64_t why; /* the notes that hold until the process ends */
	_Atomic bool
		mode_changed; /* whether the mode changed from patch to validate during recording */
	_Atomic bool barriers_forbidden; /* whether rules that forbid barriers were given out */
	_Atomic uint32_t threads_seen;
	_Atomic uint32_t threads_new;  /* threads since the last look for threads that are gone */
	_Atomic uint32_t threads_look; /* threads that were left at that look */
	uint32_t contexts_made;
	_Atomic uint32_t epoch;     /* an even number: unload.c */
	_Atomic uint32_t unloading; /* non-zero: each event checks for unloaded code */
	_Atomic uint32_t changes; /* counts changes of on, epoch, unloading, shared, ...; from 1 */
	enum incstack__check {
		INCSTACK__CHECK_NONE,
		INCSTACK__CHECK_LIBUNWIND,
		INCSTACK__CHECK_OWN
	} crosscheck;
	bool follow;
	bool resident;         /* whether the pages of the process are looked at when it ends */
	_Atomic bool stopping; /* recording stops early, because the program enters a sandbox */
	_Atomic int
		unlisted; /* threads that make system calls while their record is not in the list */
	_Atomic uint64_t
		counter; /* the newest stamp if the time-stamp counter is forbidden, else 0 */
	_Atomic bool on;
	bool wiped; /* whether forks wipe it; if not, no record may be shared with a child */
	_Atomic bool
		shared; /* whether more than one record is in use. Each event then reads a clock */
	_Atomic bool failed; /* the file could not be written */
	_Atomic int fd;
	dev_t device; /* of the file */
	ino_t inode;
	pid_t pid;
	char file[4096];
	char path[4096 + 32]; /* the file that is written: `file`, or with a number appended */
} __attribute__((aligned(4096)));

extern struct incstack__recording incstack__recording;

/* The recorder's state of the calling thread. */
extern INCSTACK__TLS struct incstack__record_local {
	struct incstack__record *mine;
	/* 0: the thread runs the program. An even number: it is in an event that began at that
	 * stack pointer; a jump out of a signal handler may end the event. INCSTACK__INSIDE: it
	 * is in a part of the recorder that no jump leaves, and the recorder itself makes the
	 * allocations. It is one word, so that no handler finds it half changed. */
	uintptr_t state;
	const void *newest; /* the block of its newest allocation that took the slow path */
	bool call_failed; /* a tick has made a system call fail, since the flag was last cleared */
	struct incstack__executable
		*executable;                   /* what the thread's record knows; null: no record */
	uintptr_t interrupted, interrupted_sp; /* in the handler: what the tick has interrupted */
	bool handling; /* in the handler of a tick, which may not allocate or wait for locks */
	bool no_second_tick; /* in the handler, and another tick would overwrite its frame */
	bool tick_is_due;    /* the next tick came while the handler ran */
} incstack__record_local;
#define INCSTACK__INSIDE ((uintptr_t)1)

/* Takes a lock. The handler of a tick does not wait for it: the function returns false there if
 * another thread has the lock. */
static inline bool incstack__record_lock(enum incstack__lock lock)
{
	if (incstack__record_local.handling)
		return incstack__lock_try(lock);
	incstack__lock_take(lock);
	return true;
}

static inline bool incstack__record_is_unloading(void)
{
	return atomic_load_explicit(&incstack__recording.unloading, memory_order_relaxed) != 0;
}

/* Leaves a note for the report. May be called in any thread and in a signal handler. */
void incstack__record_note(enum incstack__tracefile_note note);
/* Leaves a note in this file and in the files of forked children. */
void incstack__record_note_for_good(enum incstack__tracefile_note note);
/* Called before a second record is used. */
void incstack__record_share(void);

/* protect.c */
struct incstack__protection {
	uint64_t signals; /* the kernel's mask */
	uintptr_t state;
	int cancel;
	int error;
};
void incstack__record_protect(struct incstack__protection *before);
void incstack__record_unprotect(const struct incstack__protection *before);
/* Whether the thread had libc's internal signals blocked, which only libc's own threads do. */
bool incstack__record_blocks_libc(const struct incstack__protection *before);

#endif
