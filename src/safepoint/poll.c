/* SPDX-License-Identifier: MIT
 *
 * The slow paths of poll, wait_begin and wait_end, and the draws for held threads. Every transition
 * is one atomic operation on the thread's word (S1). Model: tests/model/ticket.pml; STEP_x is its
 * step x.
 */
#include "safepoint.h"

/* STEP_CLAIM: clears a bit in the word of the calling thread. Returns false if another thread has
 * cleared it. It also sets BUSY (S15), so that an operation cannot take the fast path of
 * wait_begin. */
static bool claim(struct incstack__thread *thread, uint64_t bit)
{
	incstack__step(thread->owner, INCSTACK__STEP_CLAIM);
	uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
	do {
		if (!(word & bit))
			return false;
		/* acquire: partner is arm. release: the next arm of this bit sees what was done
		 * before. */
	} while (!atomic_compare_exchange_weak_explicit(
		&thread->open.word, &word, (word & ~bit) | INCSTACK_WORD_BUSY, memory_order_acq_rel,
		memory_order_relaxed));
	return true;
}

/* Draws a ticket for every bit that is set in the word. */
static void serve(struct incstack__thread *thread)
{
	uint64_t bits;
	/* relaxed: claim checks again. */
	while ((bits = atomic_load_explicit(&thread->open.word, memory_order_relaxed) &
		       INCSTACK__REQUEST_MASK) != 0) {
		int i = __builtin_ctzll(bits);
		if (claim(thread, UINT64_C(1) << i))
			incstack__request_meet(&thread->owner->requests[i], thread, false);
	}
}

/* Begins to wait once no request needs a draw by this thread. `state` is WAITING, with BUSY if
 * the thread is stopped at a poll. */
static void settle(struct incstack__thread *thread, uint64_t state)
{
	for (;;) {
		serve(thread);
		incstack__step(thread->owner, INCSTACK__STEP_ENTER);
		uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
		if (word & INCSTACK__REQUEST_MASK)
			continue;
		/* release: partners are the acquires of hold and of tell_stop. acquire: partner
		 * is the release of tell_stop, which comes after its store to stop_left. */
		if (!atomic_compare_exchange_strong_explicit(
			    &thread->open.word, &word, (word & ~INCSTACK_WORD_BUSY) | state,
			    memory_order_acq_rel, memory_order_relaxed))
			continue;
		if (word & INCSTACK_WORD_STOP)
			incstack__thread_arrive(thread->owner);
		return;
	}
}

static void sleep_at_gate(struct incstack__thread *thread)
{
	/* acquire: partner is open_gate's release. The gate is read before the word, so that a
	 * later change of the word also changes the gate and the futex does not sleep. */
	uint32_t seen = atomic_load_explicit(&thread->gate, memory_order_acquire);
	/* relaxed: SLEEP only asks for a wake-up. A read-modify-write cannot lose another
	 * thread's change. */
	uint64_t before = atomic_fetch_or_explicit(&thread->open.word, INCSTACK_WORD_SLEEP,
						   memory_order_relaxed);
	if (before & (INCSTACK_WORD_STOP | INCSTACK_WORD_HELD))
		incstack__futex_wait(&thread->gate, seen, 0);
}

static void pass_gate(struct incstack__thread *thread)
{
	for (;;) {
		if (incstack__forked(thread->owner)) { /* nobody is left to open the gate */
			atomic_store_explicit(&thread->open.word, 0, memory_order_relaxed);
			return;
		}
		incstack__step(thread->owner, INCSTACK__STEP_LEAVE);
		uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
		if (word & (INCSTACK_WORD_STOP | INCSTACK_WORD_HELD))
			sleep_at_gate(thread);
		/* acquire: partners are the releases of unhold and let_go. The request bits are
		 * kept, because a thread that is stopped at a poll may have been armed since. */
		else if (atomic_compare_exchange_strong_explicit(
				 &thread->open.word, &word, word & INCSTACK__REQUEST_MASK,
				 memory_order_acquire, memory_order_relaxed))
			return;
	}
}

void incstack__thread_poll_slow(struct incstack_thread *open)
{
	struct incstack__thread *thread = incstack__thread_of(open);
	if (incstack__check_running(thread)) /* a waiting thread has nothing to poll for */
		return;
	if (incstack__forked(thread->owner)) { /* the requests belong to the parent */
		atomic_store_explicit(&open->word, 0, memory_order_relaxed);
		return;
	}
	thread->busy = true;
	serve(thread);
	while (atomic_load_explicit(&open->word, memory_order_relaxed) & INCSTACK_WORD_STOP) {
		settle(thread, INCSTACK_WORD_WAITING | INCSTACK_WORD_BUSY);
		pass_gate(thread);
		serve(thread);
	}
	/* release: partners are the acquires of tell_stop and arm, as in claim. */
	atomic_fetch_and_explicit(&open->word, ~INCSTACK_WORD_BUSY, memory_order_release);
	thread->busy = false;
}

int incstack__thread_wait_begin_slow(struct incstack_thread *open)
{
	struct incstack__thread *thread = incstack__thread_of(open);
	int error = incstack__check_running(thread);
	if (error)
		return error;
	thread->busy = true;
	settle(thread, INCSTACK_WORD_WAITING);
	thread->busy = false;
	return 0;
}

int incstack__thread_wait_end_slow(struct incstack_thread *open)
{
	struct incstack__thread *thread = incstack__thread_of(open);
	if (!thread)
		return INCSTACK_EINVAL;
	if (!(atomic_load_explicit(&open->word, memory_order_relaxed) & INCSTACK_WORD_WAITING))
		return INCSTACK_EINVAL;
	pass_gate(thread);
	return 0;
}

/* Clears one of the request bits and draws a ticket for it, on behalf of the held thread. */
static void serve_held(struct incstack__thread *thread, uint64_t word)
{
	int i = __builtin_ctzll(word & INCSTACK__REQUEST_MASK);
	incstack__step(thread->owner, INCSTACK__STEP_CLAIM);
	/* acquire: partner is arm. release: the next arm of this bit sees what was done before. */
	if (atomic_compare_exchange_strong_explicit(&thread->open.word, &word,
						    word & ~(UINT64_C(1) << i),
						    memory_order_acq_rel, memory_order_relaxed))
		incstack__request_meet(&thread->owner->requests[i], thread, true);
}

void incstack__thread_unhold(struct incstack__thread *thread)
{
	struct incstack_safepoint *safepoint = thread->owner;
	for (;;) {
		uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
		/* Resume serves the claims on a stopped thread. */
		if ((word & INCSTACK__REQUEST_MASK) && !(word & INCSTACK_WORD_STOP)) {
			serve_held(thread, word);
			continue;
		}
		incstack__step(safepoint, INCSTACK__STEP_UNHOLD);
		/* release: partner is the acquire of pass_gate. The thread sees what was done on
		 * its behalf. */
		if (!atomic_compare_exchange_strong_explicit(
			    &thread->open.word, &word,
			    word & ~(INCSTACK_WORD_HELD | INCSTACK_WORD_SLEEP),
			    memory_order_release, memory_order_relaxed))
			continue;
		/* From here on the thread may run, detach, and leave its record to another
		 * thread. */
		incstack__step(safepoint, INCSTACK__STEP_GATE);
		incstack__thread_open_gate(thread, word);
		if (word & INCSTACK_WORD_STOP)
			incstack__thread_arrive(safepoint);
		return;
	}
}

void incstack__threads_unhold(struct incstack__thread *held)
{
	while (held) {
		struct incstack__thread *thread = held;
		held = thread->next;
		incstack__thread_unhold(thread);
	}
}
