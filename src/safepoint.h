/* SPDX-License-Identifier: MIT
 *
 * What the files of the safepoint coordinator share: its objects, and the few
 * functions that cross from threads to requests.
 */
#ifndef INCSTACK_SRC_SAFEPOINT_H
#define INCSTACK_SRC_SAFEPOINT_H

#include <pthread.h>
#include <stdbool.h>

#include <incstack/safepoint.h>

#define INCSTACK__LINE 64 /* of the cache */
#define INCSTACK__AHEAD 8 /* threads: their lines are fetched beside each other, not in turn */
#define INCSTACK__REQUEST_MASK ((UINT64_C(1) << INCSTACK_WORD_REQUESTS) - 1)

struct incstack__thread {
	struct incstack_safepoint_thread open; /* first: the handle is its address */
	_Atomic(uint32_t) gate;                /* counts wake-ups; slept on at the gate */
	uint32_t refs;                         /* attached + requests that list it; under `lock` */
	struct incstack_safepoint *owner;
	uint32_t index; /* in the coordinator's list; under `lock` */
	bool busy;      /* in the slow path; owner only */
	bool ran;       /* when it was last told to stop; under `lock` */
	uint64_t mark;  /* of the last request that listed it, + 1 if claimed */
	/* In the list of those that are free, under `lock`; or of those that one requester
	 * or resume holds. */
	struct incstack__thread *next;
};

/* Threads beside each other, because requests look at the words of all: a page of
 * lines. One line each, because others write to a word while its neighbours poll. */
struct incstack__block {
	struct incstack__block *next;
	struct {
		_Alignas(INCSTACK__LINE) struct incstack__thread thread;
	} lines[63];
};

/* Tickets of one kind. Closed by a bit in the count itself, so that to draw and
 * to close are ordered by one word. */
#define INCSTACK__CLOSED (UINT32_C(1) << 31)

/* In `started`: a canceller sleeps until the winners have started. */
#define INCSTACK__DRAINED (UINT32_C(1) << 31)

struct incstack__pool {
	_Atomic(uint32_t) drawn;
	uint32_t limit;
};

enum { INCSTACK__RUN = 0, INCSTACK__WAIT = 1 };

/* `ended`: OPEN, or SLEPT when somebody waits, then ENDED for good. */
enum { INCSTACK__OPEN = 0, INCSTACK__SLEPT, INCSTACK__ENDED };

/* A slot for a request; slots live as long as the coordinator, so a poll frees nothing. */
struct incstack_request {
	struct incstack_safepoint *owner;
	uint64_t bit;
	/* One for each armed bit, one for the starter. Who clears a bit inherits its
	 * reference, so nobody else can act for (thread, request) again. */
	_Atomic(uint32_t) refs;
	_Atomic(uint32_t) started; /* operations whose time is taken */
	_Atomic(uint32_t) taken;   /* operations ended */
	_Atomic(uint32_t) absent;
	_Atomic(uint32_t) reason; /* TIMED_OUT or CANCELLED, the first */
	_Atomic(uint32_t) ended;
	_Atomic(bool) released;
	bool used; /* under `lock` */
	struct incstack__pool pools[2];
	_Atomic(uint32_t) running;
	uint32_t n, waiting;
	uint64_t mark;     /* above those of all earlier requests; under `lock` */
	uint64_t deadline; /* absolute; 0: none */
	incstack_operation *operation;
	incstack_request_completed *completed;
	void *argument;
	struct incstack__thread **threads; /* grows while bits are set */
	_Atomic(uint32_t) count;
	uint32_t capacity;
};

struct incstack_safepoint {
	pthread_mutex_t lock;      /* thread list, slots, refs, random; never held while waiting */
	pthread_mutex_t stop_lock; /* held while stopped: attach and other stops wait */
	/* An array: its elements' words are fetched beside each other, not in turn. */
	struct incstack__thread **threads;
	uint32_t attached, capacity;
	struct incstack__block *blocks; /* as the next two: under `lock` */
	struct incstack__thread *unused;
	uint64_t last_id;
	uint64_t random;
	uint64_t marks; /* the last one given; under `lock` */
	uint32_t *alive;
	_Atomic(bool) stopped;       /* between stop and resume */
	_Atomic(uint32_t) stop_left; /* threads that have not arrived, + 1 while arming */
	void (*step)(void *context, enum incstack_safepoint_step step);
	void *context;
	struct incstack_request requests[INCSTACK_WORD_REQUESTS];
};

static inline void incstack__step(const struct incstack_safepoint *safepoint,
				  enum incstack_safepoint_step step)
{
	if (safepoint->step)
		safepoint->step(safepoint->context, step);
}

/* A word that is 1, and 0 in a child of fork (from Linux 4.14 on). Null: no memory. */
uint32_t *incstack__alive_make(void);
void incstack__alive_free(uint32_t *alive);

uint64_t incstack__now(void);
/* Sleeps while *word == seen, at most until `until` (0: no limit); may wake early. */
void incstack__futex_wait(_Atomic(uint32_t) *word, uint32_t seen, uint64_t until);
void incstack__futex_wake(_Atomic(uint32_t) *word);

/* A ticket is drawn for a thread whose bit for the request was just cleared: by the
 * thread, or by who holds it. */
void incstack__request_meet(struct incstack_request *request, struct incstack__thread *thread,
			    bool on_behalf);
/* The starter draws for a thread that it has held since it shared the tickets. */
void incstack__request_run_held(struct incstack_request *request, struct incstack__thread *thread);
/* No claim can win any more. */
static inline bool incstack__request_spent(struct incstack_request *request)
{
	struct incstack__pool *pool = &request->pools[INCSTACK__RUN];
	return atomic_load_explicit(&pool->drawn, memory_order_seq_cst) >= pool->limit;
}
/* Takes back the bits, with their references; `absent`: counts the threads so. */
void incstack__request_disarm(struct incstack_request *request, bool absent);
/* Its deadline is over. */
bool incstack__request_late(const struct incstack_request *request);
/* A reference, unless the last one is gone already. */
bool incstack__request_take_reference(struct incstack_request *request);
/* Closes the tickets and takes back the bits; returns how many tickets were drawn. The
 * caller holds a reference. */
uint32_t incstack__request_end_early(struct incstack_request *request, uint32_t reason);
/* Gives up one reference; the last one finishes the request. */
void incstack__request_drop(struct incstack_request *request);
/* Ends it as timed out, whatever its deadline. Waits for nobody. */
void incstack__request_expire(struct incstack_request *request);
/* 0..limit - 1, the same for the same seed. Under `lock`. */
uint32_t incstack__random_below(struct incstack_safepoint *safepoint, uint32_t limit);
/* Nobody has or will have anything to do with it. Under `lock`. */
bool incstack__request_reusable(struct incstack_request *request);
/* Claims a safe thread for the caller; false when it is not there to be claimed. */
bool incstack__thread_hold(struct incstack__thread *thread);
/* Draws for the claims that others have left on the thread, and lets it go. */
void incstack__thread_unhold(struct incstack__thread *thread);
/* So for each of a list by `next`. */
void incstack__threads_unhold(struct incstack__thread *held);
/* Wakes the thread if it sleeps at the gate; `before` is its word before the change. */
void incstack__thread_open_gate(struct incstack__thread *thread, uint64_t before);
/* Says that a thread counted by stop has arrived. */
void incstack__thread_arrive(struct incstack_safepoint *safepoint);
/* Safe of its own will, not stopped at a poll. */
static inline bool incstack__waits(uint64_t word)
{
	return (word & INCSTACK_WORD_SAFE) && !(word & INCSTACK_WORD_BUSY);
}

/* Waits, and neither a requester nor a full safepoint has to do with it. */
static inline bool incstack__free(uint64_t word)
{
	return incstack__waits(word) && !(word & (INCSTACK_WORD_HELD | INCSTACK_WORD_STOP));
}

/* In a child of fork the other threads are gone, and a lock may be theirs. */
static inline bool incstack__forked(const struct incstack_safepoint *safepoint)
{
	return *safepoint->alive == 0;
}

/* Under `lock`. */
void incstack__thread_unref(struct incstack__thread *thread);

#endif
