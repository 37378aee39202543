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
	/* seq_cst: who is listed after this look is the starter's, in STEP_REARM; see draw. */
	uint32_t count = atomic_load_explicit(&request->count, memory_order_seq_cst);
	for (uint32_t i = 0; i < count; i++) {
		struct incstack__thread *thread = request->threads[i];
		incstack__step(request->owner, INCSTACK_STEP_DISARM);
		/* So is a bit that is set after this look; most are clear, and a look leaves
		 * the line where it is. seq_cst: see draw. */
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
	/* relaxed: a count to split by; hold and arm look again. */
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
	/* relaxed: published by arm's release and by the caller handing the request on. */
	atomic_store_explicit(&request->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&request->running, 0, memory_order_relaxed);
	atomic_store_explicit(&request->started, 0, memory_order_relaxed);
	atomic_store_explicit(&request->taken, 0, memory_order_relaxed);
	atomic_store_explicit(&request->absent, 0, memory_order_relaxed);
	atomic_store_explicit(&request->reason, 0, memory_order_relaxed);
	atomic_store_explicit(&request->ended, INCSTACK__OPEN, memory_order_relaxed);
	atomic_store_explicit(&request->released, false, memory_order_relaxed);
	for (int kind = INCSTACK__RUN; kind <= INCSTACK__WAIT; kind++)
		atomic_store_explicit(&request->pools[kind].drawn, 0, memory_order_relaxed);
}

/* Claims `want` of the waiting threads at random; when one left meanwhile the next is
 * tried. Those stay in the list, with references. Returns how many. Under `lock`. */
static uint32_t hold_some(struct incstack_request *request, uint32_t want)
{
	uint32_t held = 0;
	for (uint32_t i = 0; i < request->waiting && held < want; i++) {
		uint32_t chosen = i + incstack__random_below(request->owner, request->waiting - i);
		swap(request->threads, i, chosen);
		if (incstack__thread_hold(request->threads[i]))
			swap(request->threads, held++, i);
	}
	for (uint32_t i = 0; i < held; i++)
		request->threads[i]->refs++;
	request->count = held;
	return held;
}

/* Under `lock`. */
static void share_out(struct incstack_request *request,
		      const struct incstack_request_options *options)
{
	uint32_t from_running = request->n, from_waiting = 0, held = 0;
	if (options->flags & INCSTACK_REQUEST_WAITING) {
		list_waiting(request, options);
		incstack_safepoint_split(request->running, request->waiting, request->n,
					 &from_running, &from_waiting);
		held = hold_some(request, from_waiting);
	}
	request->pools[INCSTACK__WAIT].limit = held;
	/* Who was waiting and is not any more may run by now. */
	request->pools[INCSTACK__RUN].limit = from_running + (from_waiting - held);
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

/* Who runs now will mostly run at the next request, and is looked at first then. Not
 * while stopped: the stopper may be on its way through the list. Under `lock`. */
static void move_to_front(struct incstack_safepoint *safepoint, uint32_t i, uint32_t front)
{
	/* relaxed: who set it has not had the lock yet, or had it before us. */
	if (i == front || atomic_load_explicit(&safepoint->stopped, memory_order_relaxed))
		return;
	swap(safepoint->threads, i, front);
	safepoint->threads[i]->index = i;
	safepoint->threads[front]->index = front;
}

/* Lists and arms the running threads, each before the next is looked at: the first
 * sample waits for few of many threads. Under `lock`. */
static void arm_running(struct incstack_request *request,
			const struct incstack_request_options *options)
{
	struct incstack_safepoint *safepoint = request->owner;
	bool count = !(options->flags & INCSTACK_REQUEST_WAITING);
	uint32_t next = request->count, front = 0;
	for (uint32_t i = 0; i < safepoint->attached; i++) {
		struct incstack__thread *thread = safepoint->threads[i];
		if (i + INCSTACK__AHEAD < safepoint->attached)
			__builtin_prefetch(safepoint->threads[i + INCSTACK__AHEAD]);
		if (waits(thread))
			continue;
		move_to_front(safepoint, i, front++);
		if (!listed(options, thread))
			continue;
		if (count) /* relaxed: a figure */
			atomic_fetch_add_explicit(&request->running, 1, memory_order_relaxed);
		if (spent(request))
			continue;
		thread->refs++;
		request->threads[next++] = thread;
		/* seq_cst: partner is disarm. */
		atomic_store_explicit(&request->count, next, memory_order_seq_cst);
		arm(request, thread);
	}
	/* The last ticket may have been drawn, or all closed, before the last bits were
	 * set: those would be left behind. */
	incstack__step(request->owner, INCSTACK_STEP_REARM);
	if (spent(request))
		disarm(request, atomic_load_explicit(&request->reason, memory_order_relaxed) != 0);
}

/* The requester's own work, while the running threads come to their polls. */
static void run_held(struct incstack_request *request)
{
	uint32_t number, held = request->pools[INCSTACK__WAIT].limit;
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
	pthread_mutex_lock(&safepoint->lock);
	struct incstack_request *request = find_slot(safepoint);
	int error = request ? make_room(request) : INCSTACK_EBUSY;
	if (!error) {
		*out = request;
		reset(request, options);
		share_out(request, options);
		arm_running(request, options);
	}
	pthread_mutex_unlock(&safepoint->lock);
	if (error)
		return error;
	run_held(request);
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
	result->running = atomic_load_explicit(&request->running, memory_order_relaxed);
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
