/* SPDX-License-Identifier: MIT
 *
 * Requests of the safepoint coordinator: drawing tickets, the ways a request ends,
 * and its handle. A request is over when its last reference is given up. Model:
 * tests/model/ticket.pml; STEP_x is its step x.
 */
#include "safepoint.h"

/* ---- tickets ----------------------------------------------------------------- */

/* STEP_DRAW: draws a ticket and sets *number (S6). Returns false if no ticket is left. */
static bool draw(struct incstack_request *request, int kind, uint32_t *number)
{
	struct incstack__tickets *tickets = &request->tickets[kind];
	incstack__step(request->owner, INCSTACK__STEP_DRAW);
	/* relaxed: only the count itself is read, and a thread that gets no ticket writes
	 * nothing. */
	uint32_t drawn = atomic_load_explicit(&tickets->drawn, memory_order_relaxed);
	do {
		if (drawn >= tickets->limit) /* also when closed */
			return false;
		/* seq_cst, like arm and the loads in disarm and spent: either disarm sees the bit
		 * that arm set, or the starter sees that the tickets are spent. */
	} while (!atomic_compare_exchange_weak_explicit(
		&tickets->drawn, &drawn, drawn + 1, memory_order_seq_cst, memory_order_relaxed));
	*number = drawn;
	return true;
}

/* STEP_DISARM for each thread. */
void incstack__request_disarm(struct incstack_request *request, bool absent)
{
	/* seq_cst, see draw: the starter disarms threads that are listed after this load, in
	 * STEP_REARM. */
	uint32_t count = atomic_load_explicit(&request->count, memory_order_seq_cst);
	for (uint32_t i = 0; i < count; i++) {
		struct incstack__thread *thread = request->threads[i];
		incstack__step(request->owner, INCSTACK__STEP_DISARM);
		/* The starter also clears a bit that is set after this load. Most bits are clear,
		 * and a load does not take the cache line from its owner as the fetch_and would.
		 * seq_cst: see draw. */
		uint64_t before = atomic_load_explicit(&thread->open.word, memory_order_seq_cst);
		/* acq_rel: partner is arm. Either we or the thread sees the bit, never both. */
		if (before & request->bit)
			before = atomic_fetch_and_explicit(&thread->open.word, ~request->bit,
							   memory_order_acq_rel);
		if (!(before & request->bit))
			continue;
		if (absent)
			atomic_fetch_add_explicit(&request->absent, 1, memory_order_relaxed);
		incstack__request_drop(request);
	}
}

static void run(struct incstack_request *request, struct incstack__thread *thread, bool on_behalf,
		uint32_t number)
{
	struct incstack_ticket ticket = {
		.request = request,
		.thread = &thread->open,
		.number = number,
		.on_behalf = on_behalf,
	};
	incstack__step(request->owner, INCSTACK__STEP_BEGIN);
	ticket.time = incstack__now();
	incstack__step(request->owner, INCSTACK__STEP_OPERATION);
	request->operation(&ticket, request->argument);
	atomic_fetch_add_explicit(&request->taken, 1, memory_order_relaxed);
}

/* ---- the end ------------------------------------------------------------------- */

static void finish(struct incstack_request *request)
{
	incstack__step(request->owner, INCSTACK__STEP_FINISH);
	if (request->completed) {
		struct incstack_request_result result = {.size = sizeof(result)};
		incstack__request_read(request, &result);
		request->completed(request, &result, request->argument);
	}
	/* acq_rel: partners are the acquires of wait and reusable. The request is not accessed
	 * after this; the wake-up uses only its address. */
	if (atomic_exchange_explicit(&request->ended, INCSTACK__ENDED, memory_order_acq_rel) ==
	    INCSTACK__SLEPT)
		incstack__futex_wake(&request->ended);
}

void incstack__request_drop(struct incstack_request *request)
{
	incstack__step(request->owner, INCSTACK__STEP_DROP);
	/* acq_rel: every operation happens before the end. The acquire in incstack__request_read is
	 * also a partner. */
	if (atomic_fetch_sub_explicit(&request->refs, 1, memory_order_acq_rel) == 1)
		finish(request);
}

/* STEP_CLOSE: no ticket is drawn after it. */
static void close_tickets(struct incstack_request *request)
{
	for (int kind = INCSTACK__RUN; kind <= INCSTACK__WAIT; kind++) {
		incstack__step(request->owner, INCSTACK__STEP_CLOSE);
		/* seq_cst: for disarm, see draw. */
		atomic_fetch_or_explicit(&request->tickets[kind].drawn, INCSTACK__CLOSED,
					 memory_order_seq_cst);
	}
}

void incstack__request_end_early(struct incstack_request *request)
{
	/* relaxed: it is read only after the end, or by the starter, as a hint. */
	atomic_store_explicit(&request->ended_early, true, memory_order_relaxed);
	close_tickets(request);
	incstack__request_disarm(request, true);
}

bool incstack__request_take_reference(struct incstack_request *request)
{
	uint32_t refs = atomic_load_explicit(&request->refs, memory_order_relaxed);
	while (refs != 0)
		/* relaxed: the caller's handle keeps the slot from being reused. */
		if (atomic_compare_exchange_weak_explicit(&request->refs, &refs, refs + 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

bool incstack__request_late(const struct incstack_request *request)
{
	return request->deadline && incstack__now() >= request->deadline;
}

void incstack__request_meet(struct incstack_request *request, struct incstack__thread *thread,
			    bool on_behalf)
{
	uint32_t number;
	if (incstack__request_late(request)) {
		atomic_fetch_add_explicit(&request->absent, 1, memory_order_relaxed);
		incstack__request_end_early(request);
	} else if (draw(request, INCSTACK__RUN, &number)) {
		run(request, thread, on_behalf, number);
		/* The winner of the last ticket disarms after its sample, not before. A thread that
		 * polls during this sample finds no ticket, which costs less than delaying the
		 * sample until every word has been read. */
		if (number + 1 == request->tickets[INCSTACK__RUN].limit)
			incstack__request_disarm(request, false);
	}
	incstack__request_drop(request);
}

void incstack__request_run_held(struct incstack_request *request, struct incstack__thread *thread)
{
	uint32_t number;
	if (draw(request, INCSTACK__WAIT, &number))
		run(request, thread, true, number);
}

bool incstack__request_reusable(struct incstack_request *request)
{
	/* acquire: partners are finish and release, after which nobody accesses the slot. */
	return !request->used ||
	       (atomic_load_explicit(&request->released, memory_order_acquire) &&
		atomic_load_explicit(&request->ended, memory_order_acquire) == INCSTACK__ENDED);
}

/* ---- the handle ---------------------------------------------------------------- */

void incstack__request_expire(struct incstack_request *request)
{
	if (!incstack__request_take_reference(request))
		return;
	incstack__request_end_early(request);
	incstack__request_drop(request);
}

static void apply_deadline(struct incstack_request *request)
{
	if (incstack__request_late(request))
		incstack__request_expire(request);
}

static uint32_t final_state(struct incstack_request *request)
{
	if (atomic_load_explicit(&request->taken, memory_order_relaxed) == request->n)
		return INCSTACK_REQUEST_COMPLETE;
	return atomic_load_explicit(&request->ended_early, memory_order_relaxed)
		       ? INCSTACK_REQUEST_TIMED_OUT
		       : INCSTACK_REQUEST_SHORT;
}

void incstack__request_read(struct incstack_request *request,
			    struct incstack_request_result *result)
{
	/* acquire: partner is the release of the last drop. The references are read rather than
	 * `ended`, which is set only after the completion callback. */
	bool over = atomic_load_explicit(&request->refs, memory_order_acquire) == 0;
	result->state = over ? final_state(request) : INCSTACK_REQUEST_OPEN;
	result->wanted = request->n;
	result->taken = atomic_load_explicit(&request->taken, memory_order_relaxed);
	result->running = atomic_load_explicit(&request->running, memory_order_relaxed);
	result->waiting = request->waiting;
	result->absent = atomic_load_explicit(&request->absent, memory_order_relaxed);
}

static int await_end(struct incstack_request *request, uint64_t timeout_ns)
{
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

int incstack_request_wait(struct incstack_request *request, uint64_t timeout_ns,
			  struct incstack_request_result *result)
{
	if (!request || (result && result->size != sizeof(*result)))
		return INCSTACK_EINVAL;
	if (incstack__forked(request->owner))
		return INCSTACK_EFORKED;
	int error = await_end(request, timeout_ns);
	if (result)
		incstack__request_read(request, result);
	return error;
}

void incstack_request_release(struct incstack_request *request)
{
	/* release: partner is the acquire of reusable. */
	if (request && !incstack__forked(request->owner))
		atomic_store_explicit(&request->released, true, memory_order_release);
}
