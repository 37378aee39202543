/* SPDX-License-Identifier: MIT
 *
 * What the files of the recorder share: the process, its threads, and who may
 * touch them. A thread's record belongs to that thread; another one touches it
 * only while it holds the thread in a signal handler (recorder_exit.c).
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

#include "../heap/spool_format.h"
#include "../heap/trace_notes.h"
#include "../heap/trace_write.h"
#include "preload.h"
#include "recorder_lock.h"

#define INCSTACK__TLS __thread __attribute__((tls_model("initial-exec")))

/* Walks in the spool; the number of them is in `live`. */
enum { INCSTACK__WALKS_MAX = 8192 };
struct incstack__record_check {
	uint64_t *words; /* see walks.h */
	size_t size;
	uint32_t first[INCSTACK__WALKS_MAX]; /* where the walk of trace i begins */
	struct incstack_frame *walk;
	uint64_t until_unwound; /* traces before the next that libunwind walks, if not all */
	uint64_t compared;
	uint64_t mismatches;
};

/* One thread, or the shared record of those past their last TLS destructor. What every
 * event looks at comes first: two lines of the cache. It lies in the spool, in front of its
 * events, so that a reader finds both when the process is gone. A child that was not told
 * of a fork has it, too, and stores nothing there: `changes` of its recording is 0. */
struct incstack__record {
	struct incstack__trace_log log;
	struct incstack_stack *stack;
	struct incstack__trace_slot *slot;
	size_t quick;    /* recorder_event.c: below this fill of the log no event is special */
	uint64_t traces; /* taken since the last batch */
	uintptr_t low;   /* the stack's addresses */
	uintptr_t high;
	uint32_t changes; /* of the recording, when quick was set */
	int alone;        /* no other record is in use, when quick was set */
	struct incstack__record *next;
	struct incstack__record_check *check; /* null: no crosscheck */
	uint64_t retrieved;                   /* traces, before the last batch */
	uint64_t blurred; /* frames that were cut because their code is not known */
	struct incstack__spool_live live __attribute__((aligned(128))); /* for that reader */
	void *block;                                                    /* where batches are made */
	size_t block_bytes;
	/* Of the events, if they could not be written for want of memory: no other is recorded
	 * until they are, and in the spool they are whole. Else null. */
	struct incstack_tree *tree;
	uint32_t tree_epoch;
	uint64_t countdown; /* bytes until the next sample */
	uint64_t random;
	int64_t written_ns;
	size_t look; /* fill of the log at which the clock is looked at */
	uint32_t number;
	uint32_t epoch; /* in which what it has open was recorded */
	pid_t tid;
	int endings;             /* how often its TLS destructor has run */
	int held;                /* recorder_exit.c */
	uintptr_t held_at;       /* its stack pointer then */
	uint32_t written;        /* the last time that all were written */
	const uintptr_t *walker; /* while the program walks its stack: see recorder_shown.c */
	uintptr_t walker_word;
	int settled;    /* without barriers: a context that was left, a thread that ends */
	uint32_t used;  /* a context: how often it had been asked which have ended */
	int comes_back; /* unannounced: it was left by a jump */
	int fallen;     /* has followed the recording into mode validate */
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct incstack__record, next) <= 128, "two lines");
_Static_assert(offsetof(struct incstack__record, log.used) == INCSTACK__SPOOL_USED_OFFSET &&
		       offsetof(struct incstack__record, live) == INCSTACK__SPOOL_LIVE_OFFSET &&
		       sizeof(struct incstack__record) <= INCSTACK__SPOOL_RECORD_BYTES,
	       "as its reader expects");

/* Whole pages, which a fork wipes: in a child that was not told of it, nothing is on. */
struct incstack__recording {
	struct incstack_runtime *runtime;
	struct incstack__record *threads;
	struct incstack__record *late;     /* under LOCK_RECORDING, as the threads */
	struct incstack__record *contexts; /* and these */
	struct incstack__trace_slot *slots;
	uint64_t slots_taken[INCSTACK__TRACE_SLOTS / 64]; /* recorder_slot.c */
	uint64_t interval;
	uint32_t mode;
	uint64_t why; /* the notes that hold until the process ends */
	int fallen;   /* it was patch until recording had begun */
	int spared;   /* rules were given that forbid barriers */
	uint32_t threads_seen;
	uint32_t threads_new;  /* since the last look for those that are gone */
	uint32_t threads_look; /* that were left then */
	uint32_t contexts_made;
	uint32_t epoch;     /* recorder_unload.c */
	uint32_t unloading; /* not 0: events look for code that went */
	uint32_t changes;   /* of what an event must heed: on, epoch, unloading, shared; from 1 */
	enum incstack__check {
		INCSTACK__CHECK_NONE,
		INCSTACK__CHECK_LIBUNWIND,
		INCSTACK__CHECK_OWN
	} crosscheck;
	int follow;
	int stopping;     /* for good, but the program goes on: it enters a sandbox */
	uint64_t counter; /* the newest stamp, where the time-stamp counter is forbidden; or 0 */
	int on;
	int wiped;  /* by forks: else its records must not be shared with a child */
	int shared; /* more than one record is in use: each event asks the clock */
	int failed; /* the file could not be written */
	int fd;
	dev_t device; /* of the file */
	ino_t inode;
	pid_t pid;
	char file[4096];
	char path[4096 + 32]; /* of the file that is written: that one, or with a number */
} __attribute__((aligned(4096)));

extern struct incstack__recording incstack__recording;
/* Of the calling thread. */
extern INCSTACK__TLS struct incstack__record_local {
	struct incstack__record *mine;
	/* 0: in the program. An even number: in an event that began at that stack pointer;
	 * a jump out of a signal handler may end it. INCSTACK__INSIDE: in a part of the
	 * recorder that no jump leaves, and what it allocates is ours. One word, so that no
	 * handler finds it half changed. */
	uintptr_t state;
	const void *newest; /* block of its newest allocation that was not a quick event */
} incstack__record_local;
#define INCSTACK__INSIDE ((uintptr_t)1)

/* Of the core: from now on a pool is made only by incstack__pools_add. */
void incstack__pools_close(void);
bool incstack__pools_needed(void);
void incstack__pools_add(struct incstack_stack *stack);

/* recorder_thunks.c: makes thunks if they are few. Its caller has asked for memory. */
void incstack__record_make_thunks(struct incstack__record *record, struct incstack__caller caller);

/* recorder_quiet.c */
struct incstack__quiet {
	uint64_t signals; /* the kernel's mask */
	uintptr_t state;
	int cancel;
	int error;
};
void incstack__record_quiet(struct incstack__quiet *before);
void incstack__record_loud(const struct incstack__quiet *before);
/* Whether the thread had the signals blocked that libc keeps for itself, as only its own do. */
int incstack__record_blocks_libc(const struct incstack__quiet *before);

/* recorder_descriptor.c */
/* Makes the file, or empties it; negative: it cannot, or another process writes it. */
int incstack__record_create(const char *path, struct stat *status);
/* Of the file, which is opened again if the program has closed it; negative: it cannot be. */
int incstack__record_descriptor(struct stat *status);
void incstack__record_close(void);
/* The descriptor if it is in the range, which the program is about to close; or -1. */
int incstack__record_on_close(unsigned low, unsigned high);
/* The program is about to use the number for another file. */
void incstack__record_on_replace(int fd);

/* recorder_file.c */
/* Signals are blocked, also in write. */
int incstack__record_open(const char *path);
/* Before the process executes another program. */
void incstack__record_file_leave(void);
int incstack__record_write(const void *data, size_t bytes);
/* For the report. From any thread, in a signal handler, too. */
void incstack__record_note(enum incstack__trace_note note);
/* In the file of another process or process image. */
void incstack__record_note_in(const char *path, enum incstack__trace_note note);
void *incstack__record_map(size_t bytes);
/* The same memory with more bytes; null: there are none, and it stays as it was. */
void *incstack__record_remap(void *memory, size_t bytes, size_t more);
void incstack__record_unmap(void *memory, size_t bytes); /* also null */

/* recorder_unload.c */
/* Looks whether modules came or went. None of the recorder's locks is held. */
void incstack__record_modules(void);
void incstack__record_modules_unload(enum incstack__unload what, const void *address);
/* The number of a batch that was recorded in the epoch. Adds the frames whose callers are
 * cut off, because an unload that was not announced makes them doubtful. */
uint32_t incstack__record_modules_settle(uint32_t epoch, const struct incstack_tree *tree,
					 uint64_t *truncated);
/* In the child of fork, whose file is open by then. */
void incstack__record_modules_forked(void);

/* recorder_linker.c: before modules are looked at for the first time. */
void incstack__record_linker_begin(const struct incstack__linker_view *before);

/* recorder_spool.c: what is null or fails there has a note in the report. */
enum { INCSTACK__CHUNK_BYTES = 64 << 10 };
/* Beside that trace file, whose header has that time. */
void incstack__spool_open(const char *trace, uint64_t start_ns);
void incstack__spool_remove(void);
/* That of another process image goes with its trace file. */
void incstack__spool_rename(const char *trace, const char *new_trace);
/* In a child: what is there is the parent's. */
void incstack__spool_leave(void);
/* A record with an empty log, or null. */
struct incstack__record *incstack__spool_record(void);
void incstack__spool_record_release(struct incstack__record *record);
/* Gives the record, whose log is empty, room for so many bytes of events: a power of two up
 * to EVENT_BYTES_MOST, or what a record has by itself. Where there is no memory the room stays. */
void incstack__spool_log_fit(struct incstack__record *record, size_t bytes);
/* So many bytes, a power of two from ROOM_LEAST to WALK_BYTES_MOST, or null. */
enum { INCSTACK__SPOOL_ROOM_LEAST = 2 * INCSTACK__SPOOL_EVENT_BYTES };
void *incstack__spool_room(size_t bytes);
void incstack__spool_room_release(void *memory, size_t bytes); /* also null */
/* For the embedder's table. */
void *incstack__spool_chunk(void *context, size_t bytes);
void incstack__spool_chunk_release(void *context, void *memory, size_t bytes);

/* In a child: a copy of what is there takes its place. */
void incstack__spool_make_private(void);

/* recorder_fork.c */
int incstack__record_watch_forks(void);
/* In a child whose fork has interrupted an event, which is over by now perhaps: not 0 if it
 * is recorded from here on. */
int incstack__record_begin_late(void);
/* For the embedder's table: memory that a fork wipes. */
void *incstack__record_allocate(void *context, size_t bytes);
void incstack__record_release(void *context, void *memory, size_t bytes);
/* A private copy takes the place of shared memory. Without memory for it, nothing changes. */
void incstack__record_make_private(void *memory, size_t bytes);

/* recorder_start.c: in a child, with what its parent was told and had found out. */
void incstack__record_begin_again(const struct incstack__recording *parent);

/* recorder_thread.c */
int incstack__record_keys(void);
struct incstack__record *incstack__record_make(void);
/* Null: the thread has none any more (or there was no memory for it). */
static inline struct incstack__record *incstack__record_self(void)
{
	struct incstack__record *mine = incstack__record_local.mine;

	return mine != NULL ? mine : incstack__record_make();
}
/* Of a record that is about to be used beside others. */
uint32_t incstack__record_number(void);
/* With the slot of what is counted under the recording's lock. */
int incstack__record_prepare(struct incstack__record *record, uint32_t number);
/* From here on it is found by who reads the spool. */
void incstack__record_publish(struct incstack__record *record);
/* Gives its memory back, whatever it has of it. */
void incstack__record_discard(struct incstack__record *record);
/* In a child: the thread has no record. */
void incstack__record_forked(void);
/* Before a second record is used. */
void incstack__record_share(void);

/* Runs the function, with the calling thread's record, as an event. */
void incstack__record_as_event(void (*function)(struct incstack__record *, void *), void *argument);

/* recorder_shown.c */
void incstack__record_shown(uintptr_t *slot);
void incstack__record_walk(uintptr_t *slot, int by_caller);
/* Of a record that was just made: its thread may be walking already. */
void incstack__record_walk_begun(struct incstack__record *record);
/* If the walk has ended, barriers are planted again. */
void incstack__record_walk_end(struct incstack__record *record);
void incstack__record_lookup(uintptr_t caller, int certain);
const void *incstack__record_real_address(const void *address);

/* recorder_flush.c */
enum { INCSTACK__RESERVE_BYTES = 128 << 10 };
void incstack__record_flush(struct incstack__record *record);
/* Writes what the record has counted so far. */
void incstack__record_tally(struct incstack__record *record, uint32_t flags);

/* recorder_check.c */
int incstack__record_check_create(struct incstack__record *record);
void incstack__record_check_destroy(struct incstack__record *record);
/* Before threads are recorded, and in the child of fork. */
void incstack__record_check_start(void);
int incstack__record_check_room(const struct incstack__record *record);
void incstack__record_check_walk(struct incstack__record *record, uint64_t index,
				 const struct incstack_top *top);
void incstack__record_check_skip(struct incstack__record *record, uint64_t index);
void incstack__record_check_tree(struct incstack__record *record, const struct incstack_tree *tree);
/* After the traces are written: their walks go. */
void incstack__record_check_clear(struct incstack__record *record);

/* recorder_interval.c */
/* Starts the choice of samples; interval and number are set. */
void incstack__record_seed(struct incstack__record *record);
int incstack__record_is_sampled(struct incstack__record *record, size_t bytes);
void incstack__record_mark(const void *block);
/* Not 0: it may be of an allocation that was recorded. */
int incstack__record_is_marked(const void *block);

/* recorder_room.c */
/* Whether the batch must be written before another event. */
int incstack__record_is_full(const struct incstack__record *record);
/* Bytes in use of the record's stack if the caller runs on it, else 0. */
size_t incstack__record_depth(const struct incstack__record *record);
/* Room for one more event and its trace; 0: there is none. */
int incstack__record_make_room(struct incstack__record *record);
/* So that a kill finds them: the callers that a sample has left to be walked later. */
void incstack__record_complete(struct incstack__record *record);

/* recorder_gone.c */
int incstack__record_is_gone(const struct incstack__record *record);
/* Writes what a thread that is gone has recorded. */
void incstack__record_write_gone(struct incstack__record *record);
/* Before a thread is recorded: gives up, now and then, those that are gone. */
void incstack__record_look_for_gone(void);

/* recorder_slot.c */
/* A slot that no other thread counts in; or, if none is left, the one that is shared. */
struct incstack__trace_slot *incstack__slot_take(void);
void incstack__slot_give(const struct incstack__trace_slot *slot); /* also null */
/* Whether others may count in it at the same time. */
int incstack__slot_is_shared(const struct incstack__trace_slot *slot);

/* recorder_event.c */
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

/* recorder_sandbox.c */
void incstack__record_forbid(enum incstack__forbidden what, const void *filter);

/* Until a handler of the signal has returned in the thread: not even that system call may
 * be allowed in a moment. */
void incstack__record_await_thread(pid_t tid, int signal);

/* recorder_new.c */
void incstack__record_new(const void *block, size_t bytes, struct incstack__caller caller,
			  uint64_t position);
uint64_t incstack__record_position(void);

/* recorder_host.c */
/* Recognizes what mode patch would break: hardware that guards return addresses, and
 * runtimes in all that is loaded. Not 0: the mode is validate from now on. */
int incstack__record_host_look(void);
/* Notes it where the program defines malloc or operator new itself. */
void incstack__record_host_allocators(void);
/* Not 0: the code is such a runtime's, which was met for the first time. Its return
 * addresses must not be changed; no lock is taken. */
int incstack__record_host_spares(uintptr_t address);
/* Code was unloaded: others may come in its place. */
void incstack__record_host_forget(void);
/* Patch becomes validate, in each thread before its next event. From any thread, in a
 * signal handler, too. */
void incstack__record_fall_back(enum incstack__trace_note note);
/* The record's stack gets the mode that the recording fell back to. */
void incstack__record_follow_mode(struct incstack__record *record);

/* recorder_context.c */
/* The record of the context whose stack the address is in, the caller's from now on. */
struct incstack__record *incstack__record_context(uintptr_t at);
void incstack__record_context_leave(uintptr_t at, int by_jump);
void incstack__record_context_enter(const void *ucontext);
/* Writes the contexts that ran on a thread last, which is the caller or held, at `at`. */
void incstack__record_contexts_flush(pid_t tid, uintptr_t at, int last);
void incstack__record_contexts_flush_rest(int last);

/* recorder_exit.c: writes out every thread that can be held. */
void incstack__record_flush_all(uint32_t flags);
void incstack__record_exec(void);
void incstack__record_exit(void);

#endif
