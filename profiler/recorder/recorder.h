/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the recorder: the recording of the process, and the records of its
 * threads. A thread's record belongs to that thread. Another thread accesses it only while it
 * holds the owner in a signal handler (exit.c), or once the owner is gone (gone.c).
 */
#ifndef INCSTACK_RECORDER_H
#define INCSTACK_RECORDER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <incstack/incstack.h>
#include <incstack/native.h>

#include "tracefile/spool_format.h"
#include "tracefile/notes.h"
#include "tracefile/write.h"
#include "interpose/preload.h"
#include "lock.h"
#include "restart.h"
#include "trace/shared.h"

#define INCSTACK__TLS __thread __attribute__((tls_model("initial-exec")))

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
	int alone;        /* whether no other record was in use when `quick` was set */
	struct incstack__record *next;
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
	int held;                     /* FREE, WANTED, HELD or RELEASED: exit.c */
	uintptr_t held_at;            /* the stack pointer of the thread while it is held */
	struct incstack_top held_top; /* where the signal that holds it has interrupted it */
	struct incstack__blocked_call held_call;
	uint32_t held_in_vain;   /* how often the rules did not describe `held_top`: exit.c */
	uint32_t written;        /* number of the last flush of all records that wrote it */
	const uintptr_t *walker; /* while the program walks its stack: see shown.c */
	uintptr_t walker_word;
	int no_barriers;  /* its stack has mode full, because it was left or its thread ends */
	uint32_t used;    /* of a context: the value of `looks` (context.c) at its last use */
	int comes_back;   /* of a context: it was left by a jump and may be resumed unannounced */
	int mode_changed; /* whether its stack has changed to mode validate */
	int opening;      /* of a CPU profile: how many of its next calls look for new modules */
	int due;          /* of a CPU profile: the next call of the recorder serves it */
	int timer;        /* the kernel's number of its timer, plus 1; 0: none */
	uint32_t since;   /* ticks so far. After some of them, the handler sets `due` */
	char *own_stack;  /* of a CPU profile or a crosscheck: own_stack.c */
	uint64_t cpu_start, cpu_used; /* at the start of its timer, and from there to its end */
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct incstack__record, next) <= 128, "two lines");
_Static_assert(offsetof(struct incstack__record, log.used) == INCSTACK__SPOOL_USED_OFFSET &&
		       offsetof(struct incstack__record, live) == INCSTACK__SPOOL_LIVE_OFFSET &&
		       sizeof(struct incstack__record) <= INCSTACK__SPOOL_RECORD_BYTES,
	       "as its reader expects");

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
	struct incstack__record *threads;
	struct incstack__record *shared_record; /* see struct incstack__record */
	struct incstack__record *contexts;
	struct incstack__tracefile_slot *slots;
	uint64_t slots_taken[INCSTACK__TRACEFILE_SLOTS / 64]; /* slot.c */
	uint64_t interval; /* bytes, or of a CPU profile nanoseconds */
	uint64_t seed;     /* of the choice of samples; 0: each thread has its own seed */
	uint32_t kind;     /* enum incstack__tracefile_kind */
	int elapsed;       /* tests: timers count elapsed time, also of sleeping threads */
	uint32_t mode;
	uint64_t why;     /* the notes that hold until the process ends */
	int mode_changed; /* whether the mode changed from patch to validate during recording */
	int barriers_forbidden; /* whether rules that forbid barriers were given out */
	uint32_t threads_seen;
	uint32_t threads_new;  /* threads since the last look for threads that are gone */
	uint32_t threads_look; /* threads that were left at that look */
	uint32_t contexts_made;
	uint32_t epoch;     /* an even number: unload.c */
	uint32_t unloading; /* non-zero: each event checks for unloaded code */
	uint32_t changes;   /* counts changes of on, epoch, unloading, shared, ...; from 1 */
	enum incstack__check {
		INCSTACK__CHECK_NONE,
		INCSTACK__CHECK_LIBUNWIND,
		INCSTACK__CHECK_OWN
	} crosscheck;
	int follow;
	int stopping;     /* recording stops early, because the program enters a sandbox */
	int unlisted;     /* threads that make system calls while their record is not in the list */
	uint64_t counter; /* the newest stamp if the time-stamp counter is forbidden, else 0 */
	int on;
	int wiped;  /* whether forks wipe it; if not, no record may be shared with a child */
	int shared; /* whether more than one record is in use. Each event then reads a clock */
	int failed; /* the file could not be written */
	int fd;
	dev_t device; /* of the file */
	ino_t inode;
	pid_t pid;
	char file[4096];
	char path[4096 + 32]; /* the file that is written: `file`, or with a number appended */
} __attribute__((aligned(4096)));

extern struct incstack__recording incstack__recording;

/* Whether CPU time is recorded, and not the heap. */
static inline int incstack__record_is_cpu_profile(void)
{
	return incstack__recording.kind == INCSTACK__TRACEFILE_OF_CPU;
}

/* The recorder's state of the calling thread. */
extern INCSTACK__TLS struct incstack__record_local {
	struct incstack__record *mine;
	/* 0: the thread runs the program. An even number: it is in an event that began at that
	 * stack pointer; a jump out of a signal handler may end the event. INCSTACK__INSIDE: it
	 * is in a part of the recorder that no jump leaves, and the recorder itself makes the
	 * allocations. It is one word, so that no handler finds it half changed. */
	uintptr_t state;
	const void *newest; /* the block of its newest allocation that took the slow path */
	int handling;       /* in the handler of a tick, which may not allocate or wait for locks */
	int no_second_tick; /* in the handler, and another tick would overwrite its frame */
	int tick_is_due;    /* the next tick came while the handler ran */
} incstack__record_local;
#define INCSTACK__INSIDE ((uintptr_t)1)

/* Takes a lock. The handler of a tick does not wait for it: the function returns non-zero there if
 * another thread has the lock. */
static inline int incstack__record_lock(enum incstack__lock lock)
{
	if (incstack__record_local.handling)
		return incstack__lock_try(lock);
	incstack__lock_take(lock);
	return 0;
}

/* recording.c */
/* Leaves a note for the report. May be called in any thread and in a signal handler. */
void incstack__record_note(enum incstack__tracefile_note note);
/* Leaves a note in this file and in the files of forked children. */
void incstack__record_note_for_good(enum incstack__tracefile_note note);
/* Called before a second record is used. */
void incstack__record_share(void);

/* memory.c */
void *incstack__record_map(size_t bytes);
/* Enlarges memory, which may move. Null: there is none, and the memory stays as it was. */
void *incstack__record_remap(void *memory, size_t bytes, size_t more);
void incstack__record_unmap(void *memory, size_t bytes); /* `memory` may be null */
/* Replaces shared memory by a private copy. Without memory for the copy, nothing changes. */
void incstack__record_make_private(void *memory, size_t bytes);

/* name.c: the name of the record's thread, or the last name that was known. */
void incstack__record_name(const struct incstack__record *record,
			   char name[INCSTACK__TRACEFILE_NAME_BYTES]);
void incstack__record_name_own(char name[INCSTACK__TRACEFILE_NAME_BYTES]); /* the caller's */

/* small_file.c: the bytes that could be read. The text ends with a zero. */
size_t incstack__record_read_small(const char *path, char *text, size_t size);
/* resident.c: notes in the trace file how much memory the process has had. */
void incstack__record_resident(void);

/* clock.c: what clock_gettime and clock_nanosleep do; both preserve errno. */
void incstack__clock_find(void); /* called first */
int incstack__clock(clockid_t clock, struct timespec *now);
void incstack__nap(long ns);

/* thunks.c: makes thunks. `caller` is the frame that called the allocation function. */
void incstack__record_make_thunks(struct incstack__record *record, struct incstack__caller caller);

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
int incstack__record_blocks_libc(const struct incstack__protection *before);

/* descriptor.c */
/* Creates the file, or empties it. Negative: that failed, or another process writes the file. */
int incstack__record_create(const char *path, struct stat *status);
/* Returns the file's descriptor. If the program has closed it, the file is opened again.
 * Negative: that failed, and errno tells why. */
int incstack__record_descriptor(struct stat *status);
void incstack__record_close(void);
/* Returns the descriptor if it is in the range that the program is about to close, else -1. */
int incstack__record_on_close(unsigned low, unsigned high);
/* The program is about to use the number for another file. */
void incstack__record_on_replace(int fd);

/* file.c */
/* Called with signals blocked, as is incstack__record_write. Non-zero: errno tells why there is no
 * file. */
int incstack__record_open(const char *path);
/* Returns the note for a child or an image that has no file because of that error. */
enum incstack__tracefile_note incstack__record_unrecorded(int error);
/* Called before the process executes another program. Leaves a note if that program cannot write a
 * trace file. */
void incstack__record_note_unwritable(void);
int incstack__record_write(const void *data, size_t bytes);
/* Writes the parts with one system call, and changes the array. */
int incstack__record_write_parts(struct iovec *parts, int count);
/* Leaves a note in the trace file of another process or process image. */
void incstack__record_note_in(const char *path, enum incstack__tracefile_note note);

/* unload.c */
/* Checks whether modules were loaded or unloaded. The caller holds no lock of the recorder. */
void incstack__record_modules(void);
void incstack__record_modules_unload(enum incstack__unload what, const void *address);
/* Returns the epoch number to be written for a batch that was recorded in `epoch`. Cuts off
 * frames that an unannounced unload has made doubtful, and adds their number to *truncated. */
uint32_t incstack__record_modules_settle(uint32_t epoch, const struct incstack_tree *tree,
					 uint64_t *truncated);
/* In the child of fork, whose file is open by then. */
void incstack__record_modules_forked(void);

/* linker.c: called before modules are checked for the first time. */
void incstack__record_linker_begin(const struct incstack__linker_view *before);

/* spool.c, spool_file.c: a function that fails or returns null leaves a note for the report. */
enum { INCSTACK__CHUNK_BYTES = 64 << 10 };
/* Makes the spool beside the trace file, whose header has the time start_ns. */
void incstack__spool_open(const char *trace, uint64_t start_ns);
void incstack__spool_remove(void);
/* Renames the spool of another process image together with its trace file. */
void incstack__spool_rename(const char *trace, const char *new_trace);
/* In a child: gives up the spool, which belongs to the parent. */
void incstack__spool_leave(void);
/* Returns a record with an empty log, or null. */
struct incstack__record *incstack__spool_record(void);
void incstack__spool_record_release(struct incstack__record *record);
/* Changes the room for events of a record whose log is empty: to a power of two up to
 * EVENT_BYTES_MOST, or to the room that follows each record. Without memory, nothing changes. */
void incstack__spool_log_fit(struct incstack__record *record, size_t bytes);
/* Returns a room of that size, a power of two from ROOM_LEAST to WALK_BYTES_MOST, or null. */
enum { INCSTACK__SPOOL_ROOM_LEAST = 2 * INCSTACK__SPOOL_EVENT_BYTES };
void *incstack__spool_room(size_t bytes);
void incstack__spool_room_release(void *memory, size_t bytes); /* `memory` may be null */
/* Enlarges the spool so that it has memory for the handlers of ticks in all threads. */
void incstack__spool_ahead(void);
/* Makes the next enlargement larger by what a handler did not find. Called in handlers. */
void incstack__spool_want(size_t bytes);
/* The embedder's allocate_traces and release_traces. */
void *incstack__spool_chunk(void *context, size_t bytes);
void incstack__spool_chunk_release(void *context, void *memory, size_t bytes);

/* In a child: replaces the shared memory of the spool by a private copy. */
void incstack__spool_make_private(void);

/* fork.c */
/* `begin_again` starts recording in a child, with the parent's configuration and findings. */
int incstack__record_watch_forks(void (*begin_again)(const struct incstack__recording *));
/* In a child whose fork interrupted an event: starts recording if that event is over by now.
 * Returns non-zero if the child is recorded from now on. */
int incstack__record_begin_late(void);
/* The embedder's allocate and release, of memory that a fork wipes. */
void *incstack__record_allocate(void *context, size_t bytes);
void incstack__record_release(void *context, void *memory, size_t bytes);

/* Bytes in use of the record's stack if the caller runs on it, else 0. */
static inline size_t incstack__record_depth(const struct incstack__record *record)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (record == incstack__recording.shared_record) /* it may be on any stack */
		return 0;
	return here >= record->low && here < record->high ? record->high - here : 0;
}

/* record.c */
/* Returns a number for a new record. */
uint32_t incstack__record_number(void);
/* Prepares a record, with the counter slot that is used under the recording's lock. */
int incstack__record_prepare(struct incstack__record *record, uint32_t number);
/* Makes the record visible to readers of the spool. */
void incstack__record_publish(struct incstack__record *record);
/* Releases the memory of a record, which may be only partly prepared. */
void incstack__record_discard(struct incstack__record *record);

/* thread.c */
int incstack__record_keys(void);
struct incstack__record *incstack__record_make(void);
/* Called before and after a thread makes system calls while its record is not in the list. The
 * first returns 0 if the program is about to forbid such calls. The third waits until no thread
 * makes them, or for some seconds. */
int incstack__record_begin_unlisted(void);
void incstack__record_end_unlisted(void);
void incstack__record_await_unlisted(void);
/* Returns the thread's record. Null: the thread has given it up, or there was no memory for it. */
static inline struct incstack__record *incstack__record_self(void)
{
	struct incstack__record *mine = incstack__record_local.mine;

	return mine != NULL ? mine : incstack__record_make();
}
/* In a child: the calling thread no longer has a record. */
void incstack__record_forked(void);

/* Runs the function, with the calling thread's record, as an event. */
void incstack__record_as_event(void (*function)(struct incstack__record *, void *), void *argument);

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

/* shown.c */
void incstack__record_shown(uintptr_t *slot);
void incstack__record_walk(uintptr_t *slot, int by_caller);
void incstack__record_lookup(uintptr_t caller, int certain);
const void *incstack__record_real_address(const void *address);

/* flush.c */
enum { INCSTACK__RESERVE_BYTES = 128 << 10, INCSTACK__BATCH_ROOM_MOST = 1 << 20 };
void incstack__record_flush(struct incstack__record *record);
/* Writes what the record has counted so far. */
void incstack__record_tally(struct incstack__record *record, uint32_t flags);

/* libunwind.c: loads libunwind, before one of its functions is called. Returns non-zero if it
 * cannot be loaded. */
int incstack__record_libunwind(void);

/* interval.c */
/* Starts the choice of samples. The interval and the record's number are set already. */
void incstack__record_seed(struct incstack__record *record);
int incstack__record_is_sampled(struct incstack__record *record, size_t bytes);
void incstack__record_mark(const void *block);
/* Returns non-zero if the block's allocation may have been recorded. */
int incstack__record_is_marked(const void *block);

/* room.c */
/* Whether the open batch was recorded before code was unloaded, so that no event may be added to
 * it. acquire: pairs with the release in end_epoch (unload.c). */
static inline int incstack__record_is_past(const struct incstack__record *record)
{
	return record->epoch != __atomic_load_n(&incstack__recording.epoch, __ATOMIC_ACQUIRE);
}
/* Whether the batch must be written before another event. */
int incstack__record_is_full(const struct incstack__record *record);
/* Makes room for one more event and its trace. Returns 0 if there is none. */
int incstack__record_make_room(struct incstack__record *record);
/* Walks the callers that samples have left open, so that they are in the spool after a kill. */
void incstack__record_complete(struct incstack__record *record);

/* gone.c */
int incstack__record_is_gone(const struct incstack__record *record);
/* Writes what a thread that is gone has recorded. */
void incstack__record_write_gone(struct incstack__record *record);
/* Called before a thread is recorded: now and then releases the records of threads that are
 * gone. */
void incstack__record_release_gone(void);

/* slot.c */
/* Returns a slot that no other thread uses or, if none is left, the shared slot. */
struct incstack__tracefile_slot *incstack__slot_take(void);
void incstack__slot_give(const struct incstack__tracefile_slot *slot); /* `slot` may be null */
/* Whether other threads may count in the slot at the same time. */
int incstack__slot_is_shared(const struct incstack__tracefile_slot *slot);

/* event.c */
static inline int incstack__record_is_unloading(void)
{
	return __atomic_load_n(&incstack__recording.unloading, __ATOMIC_RELAXED) != 0;
}

void incstack__record_alloc(const void *block, size_t bytes, struct incstack__caller caller);
void incstack__record_free(const void *block);
void incstack__record_jump(uintptr_t sp);
void incstack__record_thread_end(void);
void incstack__record_switch(const void *ucontext);
void incstack__record_thread(void);
void incstack__record_unload(enum incstack__unload what, const void *address);

/* await.c */
/* Waits until the thread has returned from the handler of the signal, and the signal is no longer
 * pending. Soon even the system call that returns from a handler may be forbidden. Each of the
 * steps takes at least 50 us. */
void incstack__record_await_thread(pid_t tid, int signal, int steps);

/* sandbox.c */
void incstack__record_forbid(enum incstack__forbidden what, const void *filter);

/* new.c */
void incstack__record_new(const void *block, size_t bytes, struct incstack__caller caller,
			  uint64_t position);
uint64_t incstack__record_position(void);

/* host.c */
/* Whether the record's stack does not yet have the mode to which the recording fell back. */
static inline int incstack__record_must_follow_mode(const struct incstack__record *record)
{
	return incstack__recording.mode_changed && !record->mode_changed;
}

/* Looks for what does not work with mode patch: hardware that guards return addresses, and
 * certain runtimes among the loaded objects. Returns non-zero if the mode is validate now. */
int incstack__record_host_look(void);
/* Leaves a note if the program defines malloc or operator new itself. */
void incstack__record_host_allocators(void);
/* Returns non-zero if the mode is patch and the code belongs to one of these runtimes. Return
 * addresses into the runtime must not be changed. Takes no lock. */
int incstack__record_host_forbids_barriers(uintptr_t address);
/* rule.c: the embedder's find_rule. Before its first call, the other function sets where the stub
 * is loaded. */
int incstack__record_find_rule(void *context, uintptr_t address, struct incstack_rule *rule);
void incstack__record_rule_stub(struct incstack__range stub);
/* Whether the object with the code needs no further check. May be called in a handler. */
int incstack__record_host_knows(uintptr_t address);
/* Called after code was unloaded, because other code may be loaded in its place. */
void incstack__record_host_clear(void);
/* Changes mode patch to validate, in each thread before its next event. May be called in any
 * thread and in a signal handler. */
void incstack__record_fall_back(enum incstack__tracefile_note note);
/* Gives the record's stack the mode to which the recording fell back. */
void incstack__record_follow_mode(struct incstack__record *record);

/* context.c */
/* Returns the record of the context whose stack contains the address, or null. The calling
 * thread owns its stack from now on. */
struct incstack__record *incstack__record_context(uintptr_t at);
void incstack__record_context_leave(uintptr_t at, int by_jump);
void incstack__record_context_enter(const void *ucontext);
/* Writes the contexts that ran last on the thread. The thread is the caller, or is held, or is
 * gone. `at` is its stack pointer, or 0 if it is gone. If it is held, it was interrupted at
 * `held`. */
void incstack__record_contexts_flush(pid_t tid, uintptr_t at, const struct incstack_top *held,
				     int last);
void incstack__record_contexts_flush_rest(int last);

/* exit.c: writes the records of all threads that can be held. */
void incstack__record_flush_all(uint32_t flags);
void incstack__record_exec(void);
void incstack__record_exit(void);

#include "check.h"
#include "ticks.h"

#endif
