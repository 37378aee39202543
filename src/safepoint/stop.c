/* SPDX-License-Identifier: MIT
 *
 * The full safepoint: stops all threads, and lets them continue.
 * Model: tests/model/ticket.pml; STEP_x is its step x.
 */
#include "safepoint.h"

/* STEP_STOP for each thread. A thread that is waiting and not held has arrived already. */
static void tell_stop(struct incstack_safepoint *safepoint)
{
	pthread_mutex_lock(&safepoint->lock);
	/* All threads and one for this function. relaxed: a thread counts down only after it has
	 * seen its own STOP. */
	uint32_t there = 1, attached = safepoint->attached;
	atomic_store_explicit(&safepoint->stop_left, attached + 1, memory_order_relaxed);
	for (uint32_t i = 0; i < attached; i++) {
		struct incstack__thread *thread = safepoint->threads[i];
		/* The cache misses of locked operations do not overlap, so prefetch. */
		if (i + INCSTACK__AHEAD < attached)
			__builtin_prefetch(safepoint->threads[i + INCSTACK__AHEAD], 1);
		incstack__step(safepoint, INCSTACK__STEP_STOP);
		/* STOP is clear, so an addition sets it. On x86, an addition can return the old
		 * word in one instruction; an OR cannot. acq_rel: the acquire pairs with settle's
		 * release if the thread is waiting already; the release pairs with settle's acquire
		 * and publishes stop_left. */
		uint64_t before = atomic_fetch_add_explicit(&thread->open.word, INCSTACK_WORD_STOP,
							    memory_order_acq_rel);
		bool waiting = (before & INCSTACK_WORD_WAITING) && !(before & INCSTACK_WORD_HELD);
		thread->ran = !incstack__waits(before);
		there += waiting || (before & INCSTACK_WORD_GONE);
	}
	pthread_mutex_unlock(&safepoint->lock);
	atomic_fetch_sub_explicit(&safepoint->stop_left, there, memory_order_relaxed);
}

/* Lets a thread continue, and returns its old word. If the thread waits and others have left
 * claims on it in the meantime, it is held and put at the head of *held. */
static uint64_t let_go(struct incstack__thread *thread, struct incstack__thread **held)
{
	uint64_t after, word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
	bool serve;
	do {
		after = word & ~(INCSTACK_WORD_STOP | INCSTACK_WORD_SLEEP);
		serve = incstack__free(after) && (word & INCSTACK__REQUEST_MASK);
		/* release: partner is the acquire of pass_gate. acquire: as in hold. */
	} while (!atomic_compare_exchange_weak_explicit(
		&thread->open.word, &word, serve ? after | INCSTACK_WORD_HELD : after,
		memory_order_acq_rel, memory_order_relaxed));
	if (serve) {
		thread->next = *held;
		*held = thread;
	}
	incstack__thread_open_gate(thread, word);
	return word;
}

/* Lets all threads continue. Returns how many had not arrived; those will not count down. The
 * caller must unhold the threads in *held, without holding a lock. */
static uint32_t tell_resume(struct incstack_safepoint *safepoint, struct incstack__thread **held)
{
	uint32_t missing = 0;
	pthread_mutex_lock(&safepoint->lock);
	for (uint32_t i = 0; i < safepoint->attached; i++) {
		incstack__step(safepoint, INCSTACK__STEP_RESUME);
		uint64_t before = let_go(safepoint->threads[i], held);
		bool waiting = (before & INCSTACK_WORD_WAITING) && !(before & INCSTACK_WORD_HELD);
		if (!waiting && !(before & INCSTACK_WORD_GONE))
			missing++;
	}
	pthread_mutex_unlock(&safepoint->lock);
	return missing;
}

static bool await_all(struct incstack_safepoint *safepoint, uint64_t until)
{
	uint32_t left;
	/* acquire: partner is arrive's acq_rel. The owners' writes to their stacks are visible
	 * then. */
	while ((left = atomic_load_explicit(&safepoint->stop_left, memory_order_acquire)) != 0) {
		if (until && incstack__now() >= until)
			return false;
		incstack__futex_wait(&safepoint->stop_left, left, until);
	}
	return true;
}

/* After a timeout: waits for the threads that have arrived but not counted down yet, because the
 * next stop begins a new count. */
static void settle_count(struct incstack_safepoint *safepoint, uint32_t missing)
{
	atomic_fetch_sub_explicit(&safepoint->stop_left, missing, memory_order_relaxed);
	await_all(safepoint, 0);
}

int incstack_safepoint_stop(struct incstack_safepoint *safepoint, struct incstack_thread *self,
			    uint64_t timeout_ns, uint32_t *missing)
{
	if (!safepoint || (self && incstack__thread_of(self)->owner != safepoint))
		return INCSTACK_EINVAL;
	if (incstack__forked(safepoint))
		return INCSTACK_EFORKED;
	uint64_t until = timeout_ns ? incstack__now() + timeout_ns : 0;
	struct incstack__thread *held = NULL;
	int error = self ? incstack__check_owner(incstack__thread_of(self)) : 0;
	if (!error && self)
		error = incstack_thread_wait_begin(self);
	if (error)
		return error;
	pthread_mutex_lock(&safepoint->stop_lock);
	tell_stop(safepoint);
	bool all = await_all(safepoint, until);
	uint32_t absent = 0;
	/* relaxed: the flag only serves to check the caller's order of calls. */
	atomic_store_explicit(&safepoint->stopped, all, memory_order_relaxed);
	atomic_store_explicit(&safepoint->stopper, incstack__self(), memory_order_relaxed);
	if (!all) {
		absent = tell_resume(safepoint, &held);
		settle_count(safepoint, absent);
		pthread_mutex_unlock(&safepoint->stop_lock);
		incstack__threads_unhold(held);
		if (self)
			incstack_thread_wait_end(self);
	}
	if (missing)
		*missing = absent;
	return all ? 0 : INCSTACK_ETIMEDOUT;
}

int incstack_safepoint_resume(struct incstack_safepoint *safepoint, struct incstack_thread *self)
{
	if (!safepoint || (self && incstack__thread_of(self)->owner != safepoint))
		return INCSTACK_EINVAL;
	if (incstack__forked(safepoint))
		return INCSTACK_EFORKED;
	int error = incstack__check_stopped(safepoint);
	if (!error && self)
		error = incstack__check_owner(incstack__thread_of(self));
	if (error)
		return error;
	atomic_store_explicit(&safepoint->stopped, false, memory_order_relaxed);
	struct incstack__thread *held = NULL;
	tell_resume(safepoint, &held);
	pthread_mutex_unlock(&safepoint->stop_lock);
	incstack__threads_unhold(held);
	return self ? incstack_thread_wait_end(self) : 0;
}
