/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of the safepoint coordinator: its data, and the functions that one file
 * provides for the others.
 */
#ifndef INCSTACK_SRC_SAFEPOINT_H
#define INCSTACK_SRC_SAFEPOINT_H

#include <pthread.h>
#include <stdbool.h>

#include "safepoint_step.h"

#define INCSTACK__LINE 64 /* bytes of a cache line */
#define INCSTACK__AHEAD 8 /* threads to prefetch ahead, so that cache misses overlap */
#define INCSTACK__REQUEST_MASK ((UINT64_C(1) << INCSTACK_WORD_REQUESTS) - 1)

struct incstack__thread {
	struct incstack_thread open; /* first: the handle is its address */
	_Atomic(uint32_t) gate;      /* counts wake-ups; the thread sleeps on it */
	uint16_t refs;               /* attached + requests that list it; under `lock` */
	bool busy;                   /* in the slow path; owner only */
	bool ran; /* whether it was running when STOP was last set; under `lock` */
	struct incstack_safepoint *owner;
	uint32_t index; /* in the coordinator's list; under `lock` */
	uint32_t self;  /* incstack__self() of the thread that attached */
	uint64_t mark;  /* of the last request that listed it, + 1 if claimed or held */
	/* Links the list of free records (under `lock`), or a private list of the threads that
	 * one requester or resume holds. */
	struct incstack__thread *next;
};
_Static_assert(sizeof(struct incstack__thread) == INCSTACK__LINE, "one line for each thread");

/* A page of thread records. They are adjacent because requests read the words of all threads.
 * Each has a cache line of its own because other threads write to a word while the neighbours
 * poll theirs. */
struct incstack__block {
	struct incstack__block *next;
	struct {
		_Alignas(INCSTACK__LINE) struct incstack__thread thread;
	} lines[63];
};

/* A bit in `drawn` that closes the tickets. It is in the count itself, so that drawing and
 * closing are operations on one word and have an order. */
#define INCSTACK__CLOSED (UINT32_C(1) << 31)

/* The tickets of one kind. */
struct incstack__tickets {
	_Atomic(uint32_t) drawn;
	uint32_t limit;
};

enum { INCSTACK__RUN = 0, INCSTACK__WAIT = 1 };

/* Values of `ended`: OPEN, or SLEPT while somebody waits for the end, then ENDED for good. */
enum { INCSTACK__OPEN = 0, INCSTACK__SLEPT, INCSTACK__ENDED };

/* A slot for a request. Slots live as long as the coordinator, so a poll frees no memory. */
struct incstack_request {
	struct incstack_safepoint *owner;
	uint64_t bit;
	/* One reference for each armed bit, and one for the starter. The thread that clears a bit
	 * inherits the bit's reference, so only one thread acts for a (thread, request) pair. */
	_Atomic(uint32_t) refs;
	_Atomic(uint32_t) taken; /* operations that have ended */
	_Atomic(uint32_t) absent;
	_Atomic(uint32_t) ended;
	_Atomic(bool) ended_early; /* by its deadline */
	_Atomic(bool) released;
	bool used; /* under `lock` */
	struct incstack__tickets tickets[2];
	_Atomic(uint32_t) running;
	uint32_t n, waiting;
	uint64_t mark;     /* above those of all earlier requests; under `lock` */
	uint64_t deadline; /* absolute time; 0: none */
	incstack_operation *operation;
	incstack_request_completed *completed;
	void *argument;
	struct incstack__thread **threads; /* the listed threads; grows while bits are set */
	_Atomic(uint32_t) count;
	uint32_t capacity;
};

struct incstack_safepoint {
	pthread_mutex_t lock;      /* thread list, slots, refs, random; never held while waiting */
	pthread_mutex_t stop_lock; /* held while stopped, so attach and other stops wait */
	/* An array rather than a list, so that the cache misses on its elements overlap. */
	struct incstack__thread **threads;
	uint32_t attached, capacity;
	struct incstack__block *blocks; /* this and the next two: under `lock` */
	struct incstack__thread *unused;
	uint64_t last_id;
	uint64_t random;
	uint64_t marks; /* the last mark given; under `lock` */
	uint32_t *alive;
	_Atomic(bool) stopped;       /* between stop and resume */
	_Atomic(uint32_t) stopper;   /* incstack__self() of the thread that stopped */
	_Atomic(uint32_t) stop_left; /* threads that have not arrived, + 1 while arming */
	incstack__step_hook *hook;
	void *context;
	struct incstack_request requests[INCSTACK_WORD_REQUESTS];
};

static inline void incstack__step(const struct incstack_safepoint *safepoint,
				  enum incstack__step step)
{
	if (safepoint->hook)
		safepoint->hook(safepoint->context, step);
}

/* Returns a word that is 1 in this process and 0 in a child of fork (from Linux 4.14 on). Returns
 * null if there is no memory. */
uint32_t *incstack__alive_make(void);
void incstack__alive_free(uint32_t *alive);

uint64_t incstack__now(void);
/* Sleeps while *word == seen, at most until `until` (0: no limit). It may return early. */
void incstack__futex_wait(_Atomic(uint32_t) *word, uint32_t seen, uint64_t until);
void incstack__futex_wake(_Atomic(uint32_t) *word);

/* Draws a ticket for a thread whose bit for the request was just cleared. The caller is that
 * thread or, with `on_behalf`, the thread that holds it. */
void incstack__request_meet(struct incstack_request *request, struct incstack__thread *thread,
			    bool on_behalf);
/* Draws a ticket for a thread that the starter has held since it shared out the tickets. Only the
 * starter calls this. */
void incstack__request_run_held(struct incstack_request *request, struct incstack__thread *thread);
/* Whether no further claim can win. */
static inline bool incstack__request_spent(struct incstack_request *request)
{
	struct incstack__tickets *tickets = &request->tickets[INCSTACK__RUN];
	return atomic_load_explicit(&tickets->drawn, memory_order_seq_cst) >= tickets->limit;
}
/* Takes back the request's bits in all threads, with their references. If `absent`, it counts
 * these threads as absent. */
void incstack__request_disarm(struct incstack_request *request, bool absent);
/* Whether the deadline has passed. */
bool incstack__request_late(const struct incstack_request *request);
/* Takes a reference. Returns false if the last reference was given up already. */
bool incstack__request_take_reference(struct incstack_request *request);
/* Closes the tickets and takes back the bits. The caller holds a reference. */
void incstack__request_end_early(struct incstack_request *request);
/* Gives up one reference. If it was the last reference, finishes the request. */
void incstack__request_drop(struct incstack_request *request);
/* Copies what became of the request until now. */
void incstack__request_read(struct incstack_request *request,
			    struct incstack_request_result *result);
/* Ends the request as timed out, whatever its deadline is. Does not wait. */
void incstack__request_expire(struct incstack_request *request);
/* Computes how n tickets are split, as incstack_request_start says. Neither group gets more
 * tickets than it has threads. Algorithm: ICPE'15 section 3.1; Gnedt 2014, section 4.1. */
void incstack__split(uint32_t running, uint32_t waiting, uint32_t n, uint32_t *from_running,
		     uint32_t *from_waiting);
/* Returns a number in 0..limit - 1. The same seed gives the same numbers. Under `lock`. */
uint32_t incstack__random_below(struct incstack_safepoint *safepoint, uint32_t limit);
/* Whether the slot can be used again, because nobody still uses its request. Under `lock`. */
bool incstack__request_reusable(struct incstack_request *request);
/* Holds a waiting thread. Returns false if the thread does not wait, or if somebody else holds
 * or stops it. */
bool incstack__thread_hold(struct incstack__thread *thread);
/* Draws tickets for the claims that others have left on the thread, and stops holding it. */
void incstack__thread_unhold(struct incstack__thread *thread);
/* Calls incstack__thread_unhold for each thread of a list linked by `next`. */
void incstack__threads_unhold(struct incstack__thread *held);
/* Wakes the thread if it sleeps at the gate; `before` is its word before the change. */
void incstack__thread_open_gate(struct incstack__thread *thread, uint64_t before);
/* Counts down for a thread that has arrived at a full safepoint. */
void incstack__thread_arrive(struct incstack_safepoint *safepoint);
static inline struct incstack__thread *incstack__thread_of(struct incstack_thread *open)
{
	return (struct incstack__thread *)open;
}

/* A number of the calling thread. Two threads with the same number are 256 GiB apart. */
static inline uint32_t incstack__self(void)
{
	return (uint32_t)((uintptr_t)pthread_self() / INCSTACK__LINE);
}

/* Returns 0 if the calling thread is the thread that attached. */
static inline int incstack__check_owner(const struct incstack__thread *thread)
{
	if (!thread)
		return INCSTACK_EINVAL;
	return thread->self == incstack__self() ? 0 : INCSTACK_ETHREAD;
}

/* Returns 0 between stop and resume in the thread that has stopped the others. */
static inline int incstack__check_stopped(const struct incstack_safepoint *safepoint)
{
	/* relaxed: the thread that stopped reads its own stores, and others are refused. */
	if (!atomic_load_explicit(&safepoint->stopped, memory_order_relaxed))
		return INCSTACK_EINVAL;
	return atomic_load_explicit(&safepoint->stopper, memory_order_relaxed) == incstack__self()
		       ? 0
		       : INCSTACK_ETHREAD;
}

/* Returns 0 if the calling thread, the owner, runs and is not in its slow path already. The caller
 * is not checked, because a runtime may hand the record of a thread over to another thread that
 * runs in its place. */
static inline int incstack__check_running(const struct incstack__thread *thread)
{
	if (!thread)
		return INCSTACK_EINVAL;
	if (thread->busy)
		return INCSTACK_EBUSY;
	/* relaxed: only the owner changes WAITING. */
	uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
	return word & INCSTACK_WORD_WAITING ? INCSTACK_EINVAL : 0;
}

/* Whether the thread waits of its own accord and is not just stopped at a poll. */
static inline bool incstack__waits(uint64_t word)
{
	return (word & INCSTACK_WORD_WAITING) && !(word & INCSTACK_WORD_BUSY);
}

/* Whether the thread waits, no requester holds it, and no full safepoint stops it. */
static inline bool incstack__free(uint64_t word)
{
	return incstack__waits(word) && !(word & (INCSTACK_WORD_HELD | INCSTACK_WORD_STOP));
}

/* Whether this is a child of fork. There, the parent's other threads do not exist, but may have
 * left a lock held. */
static inline bool incstack__forked(const struct incstack_safepoint *safepoint)
{
	return *safepoint->alive == 0;
}

/* Gives up a reference. If it was the last reference, frees the record. Under `lock`. */
void incstack__thread_unref(struct incstack__thread *thread);

#endif
