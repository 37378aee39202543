/* SPDX-License-Identifier: MIT
 *
 * The start of a request: how the tickets are shared out, which waiting threads the
 * requester holds and samples itself, and on which threads it leaves a claim.
 *
 * For every claim, some thread will draw a ticket. A running thread draws at its next poll. If
 * another requester holds the thread, that requester draws before it lets the thread go
 * (unhold). If a full safepoint stops a waiting thread, resume draws for it.
 * Model: tests/model/ticket.pml; STEP_x is its step x.
 */
#include <stdlib.h>

#include "safepoint.h"

static struct incstack_request *find_slot(struct incstack_safepoint *safepoint)
{
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++)
		if (incstack__request_reusable(&safepoint->requests[i]))
			return &safepoint->requests[i];
	return NULL;
}

static bool listed(const struct incstack_request_options *options,
		   const struct incstack__thread *thread)
{
	for (uint32_t i = 0; i < options->count; i++)
		if (options->ids[i] == thread->open.id)
			return true;
	return options->count == 0;
}

static int make_room(struct incstack_request *request)
{
	uint32_t needed = request->owner->attached, count = request->count;
	while (count)
		incstack__thread_unref(request->threads[--count]);
	request->count = 0;
	if (request->capacity >= needed)
		return 0;
	struct incstack__thread **grown =
		realloc(request->threads, needed * sizeof(struct incstack__thread *));
	if (!grown)
		return INCSTACK_ENOMEM;
	request->threads = grown;
	request->capacity = needed;
	return 0;
}

static void swap(struct incstack__thread **threads, uint32_t i, uint32_t j)
{
	struct incstack__thread *thread = threads[i];
	threads[i] = threads[j];
	threads[j] = thread;
}

static bool waits(const struct incstack__thread *thread)
{
	/* relaxed: the value only serves to split the tickets; hold and arm check again. */
	return incstack__waits(atomic_load_explicit(&thread->open.word, memory_order_relaxed));
}

/* Lists the waiting threads, and counts those that run. Under `lock`. */
static void list_waiting(struct incstack_request *request,
			 const struct incstack_request_options *options)
{
	const struct incstack_safepoint *safepoint = request->owner;
	uint32_t running = 0, waiting = 0;
	for (uint32_t i = 0; i < safepoint->attached; i++) {
		struct incstack__thread *thread = safepoint->threads[i];
		if (!listed(options, thread))
			continue;
		if (waits(thread))
			request->threads[waiting++] = thread;
		else
			running++;
	}
	request->waiting = waiting;
	atomic_store_explicit(&request->running, running, memory_order_relaxed);
}

static void reset(struct incstack_request *request, const struct incstack_request_options *options)
{
	request->used = true;
	request->n = options->n;
	request->deadline = options->deadline_ns ? incstack__now() + options->deadline_ns : 0;
	request->operation = options->operation;
	request->completed = options->completed;
	request->argument = options->argument;
	request->waiting = 0;
	request->mark = request->owner->marks += 2;
	/* relaxed: arm's release publishes these stores to the threads, and the caller publishes
	 * them to whomever it passes the request. */
	atomic_store_explicit(&request->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&request->running, 0, memory_order_relaxed);
	atomic_store_explicit(&request->taken, 0, memory_order_relaxed);
	atomic_store_explicit(&request->absent, 0, memory_order_relaxed);
	atomic_store_explicit(&request->ended_early, false, memory_order_relaxed);
	atomic_store_explicit(&request->ended, INCSTACK__OPEN, memory_order_relaxed);
	atomic_store_explicit(&request->released, false, memory_order_relaxed);
	for (int kind = INCSTACK__RUN; kind <= INCSTACK__WAIT; kind++)
		atomic_store_explicit(&request->tickets[kind].drawn, 0, memory_order_relaxed);
}

/* Chooses `want` of the waiting threads at random and moves them to the front of the list. The
 * first *held of them are held. The others cannot be held now and will get a claim. If a thread has
 * stopped waiting in the meantime, the next thread is tried. Returns how many were chosen. Under
 * `lock`. */
static uint32_t choose_waiting(struct incstack_request *request, uint32_t want, uint32_t *held)
{
	uint32_t chosen = 0;
	for (uint32_t i = 0; i < request->waiting && chosen < want; i++) {
		struct incstack__thread **threads = request->threads;
		swap(threads, i, i + incstack__random_below(request->owner, request->waiting - i));
		bool now_held = incstack__thread_hold(threads[i]);
		if (!now_held && !waits(threads[i]))
			continue;
		swap(threads, i, chosen);
		if (now_held)
			swap(threads, chosen, (*held)++);
		chosen++;
	}
	return chosen;
}

/* Inlined into each caller, because most of the code below disappears if `waiting` is constant. */
#define ANEW static inline __attribute__((always_inline))

/* Puts a thread on the list, once. Under `lock`. */
ANEW void list(struct incstack_request *request, struct incstack__thread *thread, uint64_t mark)
{
	if (thread->mark >= request->mark)
		return;
	thread->mark = mark;
	thread->refs++;
	/* relaxed load: only this thread changes the count. seq_cst store: partner is disarm. */
	uint32_t count = atomic_load_explicit(&request->count, memory_order_relaxed);
	request->threads[count] = thread;
	atomic_store_explicit(&request->count, count + 1, memory_order_seq_cst);
}

/* STEP_ARM: leaves a claim on a thread, with a reference of its own. A waiting thread is claimed
 * only with `waiting`. If nobody else holds or stops it, it is also held and put at the head
 * of *held, and unhold draws for it. Returns false if the thread cannot be claimed. */
ANEW bool arm(struct incstack_request *request, struct incstack__thread *thread, bool waiting,
	      struct incstack__thread **held)
{
	uint64_t word, claim;
	incstack__step(request->owner, INCSTACK__STEP_ARM);
	/* relaxed: we hold a reference, so the count cannot be 0. */
	atomic_fetch_add_explicit(&request->refs, 1, memory_order_relaxed);
	word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
	do {
		if ((incstack__waits(word) && !waiting) || (word & INCSTACK_WORD_GONE)) {
			atomic_fetch_sub_explicit(&request->refs, 1, memory_order_relaxed);
			return false;
		}
		claim = word | request->bit;
		if (waiting && incstack__free(word))
			claim |= INCSTACK_WORD_HELD;
		/* release: partners are the acquires of claim and serve_held
		 * (poll.c). acquire: as in hold. seq_cst: see draw. */
	} while (!atomic_compare_exchange_weak_explicit(
		&thread->open.word, &word, claim, memory_order_seq_cst, memory_order_relaxed));
	if (waiting && incstack__free(word)) {
		thread->next = *held;
		*held = thread;
	}
	return true;
}

/* Lists and arms a thread. Returns whether that adds a claim on the tickets of the running
 * threads. Under `lock`. */
ANEW bool claim(struct incstack_request *request, struct incstack__thread *thread, bool waiting,
		struct incstack__thread **held)
{
	list(request, thread, request->mark);
	if (!arm(request, thread, waiting, held))
		return false;
	thread->mark = request->mark + 1;
	return true;
}

/* Shares out the tickets, and holds or claims the chosen waiting threads. Returns how many
 * claims there are. Under `lock`. */
static uint32_t share_out(struct incstack_request *request,
			  const struct incstack_request_options *options,
			  struct incstack__thread **held)
{
	uint32_t from_running = request->n, from_waiting = 0, now_held = 0, chosen = 0, claims = 0;
	if (options->flags & INCSTACK_REQUEST_WAITING) {
		list_waiting(request, options);
		incstack__split(request->running, request->waiting, request->n, &from_running,
				&from_waiting);
		chosen = choose_waiting(request, from_waiting, &now_held);
	}
	request->tickets[INCSTACK__WAIT].limit = now_held;
	/* A claim does not record whether its thread waited, and a thread that waited may run by
	 * now. So claims on waiting threads draw from the tickets of the running threads. */
	request->tickets[INCSTACK__RUN].limit = from_running + (from_waiting - now_held);
	for (uint32_t i = 0; i < now_held; i++) /* each keeps its place in the list */
		list(request, request->threads[i], request->mark + 1);
	for (uint32_t i = now_held; i < chosen; i++)
		claims += claim(request, request->threads[i], true, held);
	return claims;
}

/* Moves a running thread to the front, where the next request finds it first, because it will
 * probably run then as well. This is not done during a full safepoint, because
 * incstack__safepoint_run_operation may be in the middle of the list. Under `lock`. */
static void move_to_front(struct incstack_safepoint *safepoint, uint32_t i, uint32_t front)
{
	/* relaxed: the thread that set it takes the lock later, or had it before us. */
	if (i == front || atomic_load_explicit(&safepoint->stopped, memory_order_relaxed))
		return;
	swap(safepoint->threads, i, front);
	safepoint->threads[i]->index = i;
	safepoint->threads[front]->index = front;
}

/* Claims each running thread before it looks at the next thread, so that the first sample need not
 * wait until all threads have been visited. Returns how many claims there are. Under `lock`. */
static uint32_t claim_running(struct incstack_request *request,
			      const struct incstack_request_options *options)
{
	struct incstack_safepoint *safepoint = request->owner;
	bool count = !(options->flags & INCSTACK_REQUEST_WAITING);
	uint32_t front = 0, claims = 0;
	for (uint32_t i = 0; i < safepoint->attached; i++) {
		struct incstack__thread *thread = safepoint->threads[i];
		if (i + INCSTACK__AHEAD < safepoint->attached)
			__builtin_prefetch(safepoint->threads[i + INCSTACK__AHEAD]);
		if (waits(thread))
			continue;
		move_to_front(safepoint, i, front++);
		if (!listed(options, thread) || thread->mark > request->mark)
			continue;
		if (count) /* relaxed: only a statistic */
			atomic_fetch_add_explicit(&request->running, 1, memory_order_relaxed);
		if (!incstack__request_spent(request))
			claims += claim(request, thread, false, NULL);
	}
	return claims;
}

/* Threads begin and cease to wait while they are counted and claimed, so there may be more
 * tickets than claims. This claims any listed threads for the rest. Under `lock`. */
static void claim_rest(struct incstack_request *request,
		       const struct incstack_request_options *options, uint32_t claims,
		       struct incstack__thread **held)
{
	struct incstack_safepoint *safepoint = request->owner;
	for (uint32_t i = 0; i < safepoint->attached; i++) {
		struct incstack__thread *thread = safepoint->threads[i];
		if (claims >= request->tickets[INCSTACK__RUN].limit ||
		    incstack__request_spent(request))
			return;
		if (thread->mark <= request->mark && listed(options, thread))
			claims += claim(request, thread, true, held);
	}
}

/* If the last ticket was drawn, or all were closed, before the last bits were set, nobody else
 * clears those bits. Under `lock`. */
static void take_back(struct incstack_request *request)
{
	incstack__step(request->owner, INCSTACK__STEP_REARM);
	if (incstack__request_spent(request))
		incstack__request_disarm(
			request, atomic_load_explicit(&request->ended_early, memory_order_relaxed));
}

/* Samples the threads that the requester holds, while the running threads reach their polls. */
static void run_held(struct incstack_request *request, struct incstack__thread *held)
{
	uint32_t count = request->tickets[INCSTACK__WAIT].limit;
	for (uint32_t i = 0; i < count; i++) {
		incstack__request_run_held(request, request->threads[i]);
		incstack__thread_unhold(request->threads[i]);
	}
	incstack__threads_unhold(held);
}

static int begin(struct incstack_safepoint *safepoint,
		 const struct incstack_request_options *options, struct incstack_request **out)
{
	struct incstack__thread *held = NULL;
	pthread_mutex_lock(&safepoint->lock);
	struct incstack_request *request = find_slot(safepoint);
	int error = request ? make_room(request) : INCSTACK_EBUSY;
	if (!error) {
		*out = request;
		reset(request, options);
		uint32_t claims = share_out(request, options, &held);
		claims += claim_running(request, options);
		if (options->flags & INCSTACK_REQUEST_WAITING)
			claim_rest(request, options, claims, &held);
		take_back(request);
	}
	pthread_mutex_unlock(&safepoint->lock);
	if (error)
		return error;
	run_held(request, held);
	incstack__request_drop(request);
	return 0;
}

/* Ends released requests whose deadline has passed, if no poll and no call of
 * incstack_request_wait has noticed the deadline. Returns true if there was such a request. */
static bool end_abandoned(struct incstack_safepoint *safepoint)
{
	uint64_t found = 0;
	pthread_mutex_lock(&safepoint->lock);
	for (int i = 0; i < INCSTACK_WORD_REQUESTS; i++) {
		struct incstack_request *request = &safepoint->requests[i];
		if (request->used &&
		    atomic_load_explicit(&request->released, memory_order_acquire) &&
		    incstack__request_late(request) && incstack__request_take_reference(request))
			found |= request->bit;
	}
	pthread_mutex_unlock(&safepoint->lock);
	/* The lock is not held here, because completion callbacks may start requests. */
	for (uint64_t bits = found; bits; bits &= bits - 1) {
		struct incstack_request *request = &safepoint->requests[__builtin_ctzll(bits)];
		incstack__request_end_early(request);
		incstack__request_drop(request);
	}
	return found != 0;
}

int incstack_request_start(struct incstack_safepoint *safepoint,
			   const struct incstack_request_options *options,
			   struct incstack_request **out)
{
	if (!safepoint || !options || !out || options->size != sizeof(*options) || !options->n ||
	    options->n >= INCSTACK__CLOSED || !options->operation ||
	    !options->ids != !options->count ||
	    (options->flags & ~(uint32_t)INCSTACK_REQUEST_WAITING))
		return INCSTACK_EINVAL;
	if (incstack__forked(safepoint))
		return INCSTACK_EFORKED;
	int error = begin(safepoint, options, out);
	if (error == INCSTACK_EBUSY && end_abandoned(safepoint))
		error = begin(safepoint, options, out);
	return error;
}
