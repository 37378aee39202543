/* SPDX-License-Identifier: MIT
 *
 * Requests of the safepoint coordinator: arming threads, drawing tickets, and
 * the ways a request ends. A request is over when its last reference is given
 * up. Model: tests/model/ticket.pml; STEP_x is its step x.
 */
#include <sched.h>
#include <stdlib.h>

#include "safepoint.h"

/* ---- tickets ----------------------------------------------------------------- */

/* STEP_DRAW: true and the number, if a ticket is left. */
static bool draw(struct incstack_request *request, int kind, uint32_t *number)
{
	struct incstack__pool *pool = &request->pools[kind];
	incstack__step(request->owner, INCSTACK_STEP_DRAW);
	/* relaxed: the count is all that is read; losers change nothing. */
	uint32_t drawn = atomic_load_explicit(&pool->drawn, memory_order_relaxed);
	do {
		if (drawn >= pool->limit) /* also when closed */
			return false;
		/* seq_cst, as disarm's load, arm and spent: either disarm sees the bit or
		 * the starter sees that the tickets are spent. */
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->drawn, &drawn, drawn + 1, memory_order_seq_cst, memory_order_relaxed));
	*number = drawn;
	return true;
}

/* No running thread can win any more. */
static bool spent(struct incstack_request *request)
{
	struct incstack__pool *pool = &request->pools[INCSTACK__RUN];
	return atomic_load_explicit(&pool->drawn, memory_order_seq_cst) >= pool->limit;
}

/* STEP_DISARM for each thread: takes back the bits, with their references. */
static void disarm(struct incstack_request *request, bool absent)
{
	for (uint32_t i = 0; i < request->count; i++) {
		struct incstack__thread *thread = request->threads[i];
		incstack__step(request->owner, INCSTACK_STEP_DISARM);
		/* A bit that is set after this look is the starter's, in STEP_REARM; most
		 * are clear, and a look leaves the line where it is. seq_cst: see draw. */
		if (!(atomic_load_explicit(&thread->open.word, memory_order_seq_cst) &
		      request->bit))
			continue;
		/* acq_rel: partner is arm. Exactly one of us and the thread sees the bit. */
		uint64_t before = atomic_fetch_and_explicit(&thread->open.word, ~request->bit,
							    memory_order_acq_rel);
		if (!(before & request->bit))
			continue;
		if (absent)
			atomic_fetch_add_explicit(&request->absent, 1, memory_order_relaxed);
		incstack__request_drop(request);
	}
}

static void run(struct incstack_request *request, struct incstack__thread *thread, int kind,
		uint32_t number)
{
	struct incstack_ticket ticket = {
		.request = request,
		.thread = &thread->open,
		.number = number,
		.on_behalf = kind == INCSTACK__WAIT,
	};
	incstack__step(request->owner, INCSTACK_STEP_BEGIN);
	ticket.time = incstack__now();
	/* release: partner is the acquire of drain; the time lies before cancel's return. */
	atomic_fetch_add_explicit(&request->started, 1, memory_order_release);
	incstack__step(request->owner, INCSTACK_STEP_OPERATION);
	request->operation(&ticket, request->argument);
	atomic_fetch_add_explicit(&request->taken, 1, memory_order_relaxed);
}

/* ---- the end ------------------------------------------------------------------- */

static void finish(struct incstack_request *request)
{
	incstack__step(request->owner, INCSTACK_STEP_FINISH);
	if (request->completed)
		request->completed(request, request->argument);
	/* acq_rel: partner is the acquire of ask, wait and reuse; we touch the request
	 * no more (the wake-up uses its address only). */
	if (atomic_exchange_explicit(&request->ended, INCSTACK__ENDED, memory_order_acq_rel) ==
	    INCSTACK__SLEPT)
		incstack__futex_wake(&request->ended);
}

void incstack__request_drop(struct incstack_request *request)
{
	incstack__step(request->owner, INCSTACK_STEP_DROP);
	/* acq_rel: every operation happens before the end. */
	if (atomic_fetch_sub_explicit(&request->refs, 1, memory_order_acq_rel) == 1)
		finish(request);
}

/* STEP_CLOSE: no ticket is drawn after it. Returns how many were. */
static uint32_t close_tickets(struct incstack_request *request)
{
	uint32_t drawn = 0;
	for (int kind = INCSTACK__RUN; kind <= INCSTACK__WAIT; kind++) {
		incstack__step(request->owner, INCSTACK_STEP_CLOSE);
		/* seq_cst: for disarm, as in draw. */
		drawn += atomic_fetch_or_explicit(&request->pools[kind].drawn, INCSTACK__CLOSED,
						  memory_order_seq_cst) &
			 ~INCSTACK__CLOSED;
	}
	return drawn;
}

/* The caller holds a reference. */
static uint32_t end_early(struct incstack_request *request, uint32_t reason)
{
	uint32_t none = 0;
	/* relaxed: read only after the end. */
	atomic_compare_exchange_strong_explicit(&request->reason, &none, reason,
						memory_order_relaxed, memory_order_relaxed);
	uint32_t drawn = close_tickets(request);
	disarm(request, true);
	return drawn;
}

/* A reference, unless the last one is gone already. */
static bool take_reference(struct incstack_request *request)
{
	uint32_t refs = atomic_load_explicit(&request->refs, memory_order_relaxed);
	while (refs != 0)
		/* relaxed: the caller's handle keeps the request itself. */
		if (atomic_compare_exchange_weak_explicit(&request->refs, &refs, refs + 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

static bool late(const struct incstack_request *request)
{
	return request->deadline && incstack__now() >= request->deadline;
}

void incstack__request_meet(struct incstack_request *request, struct incstack__thread *thread)
{
	uint32_t number;
	if (late(request)) {
		atomic_fetch_add_explicit(&request->absent, 1, memory_order_relaxed);
		end_early(request, INCSTACK_REQUEST_TIMED_OUT);
	} else if (draw(request, INCSTACK__RUN, &number)) {
		run(request, thread, INCSTACK__RUN, number);
		/* After the sample: who polls meanwhile finds no ticket, which is cheaper
		 * for all than a sample that waits until every word was looked at. */
		if (number + 1 == request->pools[INCSTACK__RUN].limit)
			disarm(request, false);
	}
	incstack__request_drop(request);
}

/* ---- the start ----------------------------------------------------------------- */

bool incstack__request_reusable(struct incstack_request *request)
{
	/* acquire: partners are finish and release; nobody touches the slot after both. */
	return !request->used ||
	       (atomic_load_explicit(&request->released, memory_order_acquire) &&
		atomic_load_explicit(&request->ended, memory_order_acquire) == INCSTACK__ENDED);
}

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
	uint32_t needed = request->owner->attached;
	while (request->count)
		incstack__thread_unref(request->threads[--request->count]);
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

/* Fills the request's list with references, the waiting threads in front; those
 * are left out when they are not wanted. Under `lock`. */
static int list_threads(struct incstack_request *request,
			const struct incstack_request_options *options)
{
	int error = make_room(request);
	if (error)
		return error;
	request->waiting = 0;
	const struct incstack_safepoint *safepoint = request->owner;
	for (uint32_t i = 0; i < safepoint->attached; i++) {
		struct incstack__thread *thread = safepoint->threads[i];
		/* relaxed: a count to split by; hold and arm look again. */
		bool waits = incstack__waits(
			atomic_load_explicit(&thread->open.word, memory_order_relaxed));
		if ((waits && !(options->flags & INCSTACK_REQUEST_WAITING)) ||
		    !listed(options, thread))
			continue;
		thread->refs++;
		request->threads[request->count++] = thread;
		if (waits)
			swap(request->threads, request->waiting++, request->count - 1);
	}
	request->running = request->count - request->waiting;
	return 0;
}

static void reset(struct incstack_request *request, const struct incstack_request_options *options)
{
	request->used = true;
	request->n = options->n;
	request->deadline = options->deadline_ns ? incstack__now() + options->deadline_ns : 0;
	request->operation = options->operation;
	request->completed = options->completed;
	request->argument = options->argument;
	/* relaxed: published by arm's release and by the caller handing the request on. */
	atomic_store_explicit(&request->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&request->started, 0, memory_order_relaxed);
	atomic_store_explicit(&request->taken, 0, memory_order_relaxed);
	atomic_store_explicit(&request->absent, 0, memory_order_relaxed);
	atomic_store_explicit(&request->reason, 0, memory_order_relaxed);
	atomic_store_explicit(&request->ended, INCSTACK__OPEN, memory_order_relaxed);
	atomic_store_explicit(&request->released, false, memory_order_relaxed);
	for (int kind = INCSTACK__RUN; kind <= INCSTACK__WAIT; kind++)
		atomic_store_explicit(&request->pools[kind].drawn, 0, memory_order_relaxed);
}

/* Claims `want` of the waiting threads at random, to the front of the list; when
 * one left meanwhile the next is tried. Returns how many it got. Under `lock`. */
static uint32_t hold_some(struct incstack_request *request, uint32_t want)
{
	uint32_t held = 0;
	for (uint32_t i = 0; i < request->waiting && held < want; i++) {
		uint32_t chosen = i + incstack__random_below(request->owner, request->waiting - i);
		swap(request->threads, i, chosen);
		if (incstack__thread_hold(request->threads[i]))
			swap(request->threads, held++, i);
	}
	return held;
}

/* STEP_ARM: sets the bit of a running thread, with a reference of its own. */
static void arm(struct incstack_request *request, struct incstack__thread *thread)
{
	incstack__step(request->owner, INCSTACK_STEP_ARM);
	/* relaxed: we hold one, so it cannot be the first. */
	atomic_fetch_add_explicit(&request->refs, 1, memory_order_relaxed);
	uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
	do {
		if (incstack__waits(word) || (word & INCSTACK_WORD_GONE)) {
			atomic_fetch_sub_explicit(&request->refs, 1, memory_order_relaxed);
			return;
		}
		/* release: partner is the acquire of serve; seq_cst: see draw. */
	} while (!atomic_compare_exchange_weak_explicit(&thread->open.word, &word,
							word | request->bit, memory_order_seq_cst,
							memory_order_relaxed));
}

static void arm_running(struct incstack_request *request, uint32_t held)
{
	if (!request->pools[INCSTACK__RUN].limit)
		return;
	/* From the end: the running ones; the others escaped the hold. */
	for (uint32_t i = request->count; i > held && !spent(request); i--)
		arm(request, request->threads[i - 1]);
	/* The last ticket may have been drawn, or all closed, before the last bits were
	 * set: those would be left behind. */
	incstack__step(request->owner, INCSTACK_STEP_REARM);
	if (spent(request))
		disarm(request, atomic_load_explicit(&request->reason, memory_order_relaxed) != 0);
}

/* The requester's own work, while the running threads come to their polls. */
static void run_held(struct incstack_request *request, uint32_t held)
{
	uint32_t number;
	for (uint32_t i = 0; i < held; i++) {
		if (draw(request, INCSTACK__WAIT, &number))
			run(request, request->threads[i], INCSTACK__WAIT, number);
		incstack__thread_unhold(request->threads[i]);
	}
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
	uint32_t from_running, from_waiting;
	pthread_mutex_lock(&safepoint->lock);
	struct incstack_request *request = find_slot(safepoint);
	int error = request ? list_threads(request, options) : INCSTACK_EBUSY;
	if (error) {
		pthread_mutex_unlock(&safepoint->lock);
		return error;
	}
	reset(request, options);
	incstack_safepoint_split(request->running, request->waiting, options->n, &from_running,
				 &from_waiting);
	uint32_t held = hold_some(request, from_waiting);
	pthread_mutex_unlock(&safepoint->lock);
	request->pools[INCSTACK__WAIT].limit = held;
	/* Who was waiting and is not any more may run by now. */
	request->pools[INCSTACK__RUN].limit = from_running + (from_waiting - held);
	*out = request;
	arm_running(request, held);
	run_held(request, held);
	incstack__request_drop(request);
	return 0;
}

int incstack_request_handshake(struct incstack_safepoint *safepoint, uint64_t id,
			       incstack_operation *operation, void *argument,
			       struct incstack_request **request)
{
	const struct incstack_request_options options = {
		.size = sizeof(options),
		.ids = &id,
		.count = 1,
		.n = 1,
		.flags = INCSTACK_REQUEST_WAITING,
		.operation = operation,
		.argument = argument,
	};
	return incstack_request_start(safepoint, &options, request);
}

/* ---- the handle ---------------------------------------------------------------- */

int incstack_request_cancel(struct incstack_request *request)
{
	if (!request)
		return INCSTACK_EINVAL;
	if (!take_reference(request))
		return 0;
	uint32_t drawn = end_early(request, INCSTACK_REQUEST_CANCELLED);
	/* STEP_DRAIN. acquire: partner is the release in run. */
	while (atomic_load_explicit(&request->started, memory_order_acquire) < drawn) {
		incstack__step(request->owner, INCSTACK_STEP_DRAIN);
		sched_yield();
	}
	incstack__request_drop(request);
	return 0;
}

void incstack__request_expire(struct incstack_request *request)
{
	if (!take_reference(request))
		return;
	end_early(request, INCSTACK_REQUEST_TIMED_OUT);
	incstack__request_drop(request);
}

static void apply_deadline(struct incstack_request *request)
{
	if (late(request))
		incstack__request_expire(request);
}

static uint32_t final_state(struct incstack_request *request)
{
	uint32_t reason = atomic_load_explicit(&request->reason, memory_order_relaxed);
	if (atomic_load_explicit(&request->taken, memory_order_relaxed) == request->n)
		return INCSTACK_REQUEST_COMPLETE;
	return reason ? reason : INCSTACK_REQUEST_SHORT;
}

int incstack_request_ask(struct incstack_request *request, struct incstack_request_result *result)
{
	if (!request || !result || result->size != sizeof(*result))
		return INCSTACK_EINVAL;
	apply_deadline(request);
	/* acquire: partner is the release of the last drop. The references, not `ended`:
	 * the completion callback may ask. */
	bool over = atomic_load_explicit(&request->refs, memory_order_acquire) == 0;
	result->state = over ? final_state(request) : INCSTACK_REQUEST_OPEN;
	result->wanted = request->n;
	result->taken = atomic_load_explicit(&request->taken, memory_order_relaxed);
	result->running = request->running;
	result->waiting = request->waiting;
	result->absent = atomic_load_explicit(&request->absent, memory_order_relaxed);
	return 0;
}

int incstack_request_wait(struct incstack_request *request, uint64_t timeout_ns)
{
	if (!request)
		return INCSTACK_EINVAL;
	uint64_t until = timeout_ns ? incstack__now() + timeout_ns : 0;
	for (;;) {
		apply_deadline(request);
		uint32_t ended = INCSTACK__OPEN;
		/* acquire: partner is finish. */
		atomic_compare_exchange_strong_explicit(&request->ended, &ended, INCSTACK__SLEPT,
							memory_order_acquire, memory_order_acquire);
		if (ended == INCSTACK__ENDED)
			return 0;
		if (until && incstack__now() >= until)
			return INCSTACK_ETIMEDOUT;
		uint64_t first = until;
		if (request->deadline > incstack__now() && (!until || request->deadline < until))
			first = request->deadline;
		incstack__futex_wait(&request->ended, INCSTACK__SLEPT, first);
	}
}

int incstack_request_release(struct incstack_request *request)
{
	if (!request)
		return INCSTACK_EINVAL;
	/* acq_rel: partner is the acquire of reuse. */
	if (atomic_exchange_explicit(&request->released, true, memory_order_acq_rel))
		return INCSTACK_EINVAL;
	return 0;
}
