/* SPDX-License-Identifier: MIT
 *
 * What a thread or a context has recorded since its last batch, and how a batch is written. A
 * thread's record belongs to that thread. Another thread accesses it only while it holds the owner
 * in a signal handler (exit.c), or once the owner is gone (gone.c).
 */
#ifndef INCSTACK_RECORDER_LOG_H
#define INCSTACK_RECORDER_LOG_H

#include <stdbool.h>
#include <stdatomic.h>
#include <stdint.h>

#include <incstack/incstack.h>
#include <incstack/native.h>

#include "recorder/code/executable.h"
#include "recorder/recording/recording.h"
#include "recorder/system/restart.h"
#include "trace/shared.h"
#include "tracefile/parts.h"
#include "tracefile/spool_format.h"
#include "tracefile/write.h"

/* The walks for --crosscheck, whose words are in the spool. live.walk_count is their number. */
enum { INCSTACK__WALKS_MAX = 8192 };
struct incstack__record_check {
	uint64_t *words; /* see walks.h */
	size_t size;
	uint32_t first[INCSTACK__WALKS_MAX]; /* where the walk of trace i begins */
	struct incstack_frame *walk;
	uint64_t until_unwound; /* traces before libunwind walks again, if not for each trace */
	uint64_t compared;
	uint64_t mismatches;
};

/* The record of a thread or of a context, or the shared record, which serves unknown stacks and
 * threads past their last TLS destructor. The members that every event reads come first and fill
 * two cache lines. The record is in the spool, before its events, so that a reader finds both when
 * the process is gone. A child whose fork was not announced also maps the record, but stores
 * nothing there, because `changes` of the child's recording is 0. */
struct incstack__record {
	struct incstack__tracefile_log log;
	struct incstack_stack *stack;
	struct incstack__tracefile_slot *slot; /* its counters: slot.c */
	size_t quick;    /* while log.used is below this, an event takes the fast path */
	uint64_t traces; /* taken since the last batch */
	uintptr_t low;   /* the bounds of the stack */
	uintptr_t high;
	uint32_t changes; /* recording.changes when `quick` was set */
	bool alone;       /* whether no other record was in use when `quick` was set */
	struct incstack__record *_Atomic next;
	struct incstack__record_check *check; /* null: no crosscheck */
	uint64_t retrieved;                   /* traces of all earlier batches */
	uint64_t blurred;                     /* frames whose callers were cut off: unload.c */
	struct incstack__spool_live live __attribute__((aligned(128))); /* for the spool's reader */
	void *block;                                                    /* where batches are made */
	size_t block_bytes;
	/* The traces of the events, if there was no memory to write the batch; else null. Until the
	 * batch is written, no other event is recorded. The spool still holds all its events. */
	struct incstack_tree *tree;
	uint32_t tree_epoch;
	uint64_t countdown; /* bytes until the next sample */
	uint64_t random;
	int64_t written_ns;
	size_t look;        /* the value of log.used at which the clock is read again */
	uint64_t completed; /* the stamp of the last walk of open callers */
	size_t batch_room;  /* bytes for traces that the largest batch needed above RESERVE_BYTES */
	uint32_t number;
	uint32_t epoch; /* in which its open batch was recorded */
	pid_t tid;
	int destructor_runs;          /* how often its TLS destructor has run */
	_Atomic int held;             /* FREE, WANTED, HELD or RELEASED: exit.c */
	uintptr_t held_at;            /* the stack pointer of the thread while it is held */
	struct incstack_top held_top; /* where the signal that holds it has interrupted it */
	struct incstack__blocked_call held_call;
	uint32_t held_in_vain;   /* how often the rules did not describe `held_top`: exit.c */
	uint32_t written;        /* number of the last flush of all records that wrote it */
	const uintptr_t *walker; /* while the program walks its stack: see shown.c */
	uintptr_t walker_word;
	bool no_barriers;  /* its stack has mode full, because it was left or its thread ends */
	uint32_t used;     /* of a context: the value of `looks` (context.c) at its last use */
	bool comes_back;   /* of a context: it was left by a jump and may be resumed unannounced */
	bool mode_changed; /* whether its stack has changed to mode validate */
	int opening;       /* of a CPU profile: how many of its next calls look for new modules */
	bool due;          /* of a CPU profile: the next call of the recorder serves it */
	int timer;         /* the kernel's number of its timer, plus 1; 0: none */
	uint32_t since;    /* ticks so far. After some of them, the handler sets `due` */
	char *own_stack;   /* of a CPU profile or a crosscheck: own_stack.c */
	uint64_t cpu_start, cpu_used; /* at the start of its timer, and from there to its end */
	struct incstack__ticking { /* of a CPU profile whose ticks come from the kernel's events */
		void *_Atomic event; /* null: the timer alone makes the ticks */
		bool sees_kernel;    /* whether the event also ticks in the kernel */
		bool wants_event;    /* the next call of the recorder opens it again */
		uint32_t traps;      /* ticks of the event since the last tick of the timer */
		uint64_t rest_until; /* CPU time until which the thread runs without samples */
		uint64_t told;       /* the thread's CPU time for which samples stand already */
		int64_t credit;     /* time for which the next sample of the event stands besides */
		uint64_t timer_cpu; /* CPU time, and that in the kernel, at the timer's last tick */
		uint64_t timer_system;
	} ticking;
	struct incstack__executable executable; /* of a CPU profile */
	/* Of a wall-clock profile: */
	uint64_t begun;             /* when the thread's recording began, CLOCK_MONOTONIC */
	struct incstack__wait wait; /* in which the thread is */
	uint64_t wait_end,
		wait_cpu; /* when its last long wait ended, and the CPU time of the thread then */
	struct incstack__parts parts;
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct incstack__record, next) <= 128, "two lines");
_Static_assert(offsetof(struct incstack__record, log.used) == INCSTACK__SPOOL_USED_OFFSET &&
		       offsetof(struct incstack__record, live) == INCSTACK__SPOOL_LIVE_OFFSET &&
		       sizeof(struct incstack__record) <= INCSTACK__SPOOL_RECORD_BYTES,
	       "as its reader expects");

/* log_memory.c */
/* Returns a record with an empty log, or null. */
struct incstack__record *incstack__spool_record(void);
void incstack__spool_record_release(struct incstack__record *record);
/* Changes the room for events of a record whose log is empty: to a power of two up to
 * EVENT_BYTES_MOST, or to the room that follows each record. Without memory, nothing changes. */
void incstack__spool_log_fit(struct incstack__record *record, size_t bytes);
/* Bytes in use of the record's stack if the caller runs on it, else 0. */
static inline size_t incstack__record_depth(const struct incstack__record *record)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (record == incstack__recording.shared_record) /* it may be on any stack */
		return 0;
	return here >= record->low && here < record->high ? record->high - here : 0;
}

/* Whether the open batch was recorded before code was unloaded, so that no event may be added to
 * it. acquire: pairs with the release in end_epoch (unload.c). */
static inline bool incstack__record_is_past(const struct incstack__record *record)
{
	return record->epoch !=
	       atomic_load_explicit(&incstack__recording.epoch, memory_order_acquire);
}

/* Whether the record's stack does not yet have the mode to which the recording fell back. */
static inline bool incstack__record_must_follow_mode(const struct incstack__record *record)
{
	return incstack__recording.mode_changed && !record->mode_changed;
}

/* Gives the record's stack the mode to which the recording fell back. */
void incstack__record_follow_mode(struct incstack__record *record);
/* record.c */
/* Returns a number for a new record. */
uint32_t incstack__record_number(void);
/* Prepares a record, with the counter slot that is used under the recording's lock. */
int incstack__record_prepare(struct incstack__record *record, uint32_t number);
/* Makes the record visible to readers of the spool. */
void incstack__record_publish(struct incstack__record *record);
/* Releases the memory of a record, which may be only partly prepared. */
void incstack__record_discard(struct incstack__record *record);

/* flush.c */
enum { INCSTACK__RESERVE_BYTES = 128 << 10, INCSTACK__BATCH_ROOM_MOST = 1 << 20 };
void incstack__record_flush(struct incstack__record *record);
/* Writes what the record has counted so far. */
void incstack__record_tally(struct incstack__record *record, uint32_t flags);

/* interval.c */
/* Starts the choice of samples. The interval and the record's number are set already. */
void incstack__record_seed(struct incstack__record *record);
bool incstack__record_is_sampled(struct incstack__record *record, size_t bytes);
void incstack__record_mark(const void *block);
/* Returns true if the block's allocation may have been recorded. */
bool incstack__record_is_marked(const void *block);

/* name.c: the name of the record's thread, or the last name that was known. */
void incstack__record_name(const struct incstack__record *record,
			   char name[INCSTACK__TRACEFILE_NAME_BYTES]);
void incstack__record_name_own(char name[INCSTACK__TRACEFILE_NAME_BYTES]); /* the caller's */

#endif
