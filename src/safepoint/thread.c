/* SPDX-License-Identifier: MIT
 *
 * Threads of the safepoint coordinator: the slow side of polls, going safe and
 * back, attaching and leaving. Every transition is one atomic operation on the
 * thread's word. Model: tests/model/ticket.pml; STEP_x is its step x.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "safepoint.h"

#define NS_PER_S UINT64_C(1000000000)

uint64_t incstack__now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void incstack__futex_wait(_Atomic(uint32_t) *word, uint32_t seen, uint64_t until)
{
	struct timespec end = {.tv_sec = (time_t)(until / NS_PER_S),
			       .tv_nsec = (long)(until % NS_PER_S)};
	int saved = errno;
	/* FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time. */
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, until ? &end : NULL, NULL,
		FUTEX_BITSET_MATCH_ANY);
	errno = saved;
}

void incstack__futex_wake(_Atomic(uint32_t) *word)
{
	int saved = errno;
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}

static struct incstack__thread *inside(struct incstack_safepoint_thread *thread)
{
	return (struct incstack__thread *)thread;
}

void incstack__thread_arrive(struct incstack_safepoint *safepoint)
{
	/* acq_rel: partner is the acquire of await_all, after which the stacks are read. */
	if (atomic_fetch_sub_explicit(&safepoint->stop_left, 1, memory_order_acq_rel) == 1)
		incstack__futex_wake(&safepoint->stop_left);
}

void incstack__thread_open_gate(struct incstack__thread *thread, uint64_t before)
{
	if (!(before & INCSTACK_WORD_SLEEP))
		return;
	/* release: partner is the acquire of `gate` in sleep_at_gate. */
	atomic_fetch_add_explicit(&thread->gate, 1, memory_order_release);
	incstack__futex_wake(&thread->gate);
}

/* STEP_CLAIM: clears a bit in the word of the calling thread. Returns false if another thread
 * has cleared it. It also sets BUSY, so that an operation cannot go safe by the fast path. */
static bool claim(struct incstack__thread *thread, uint64_t bit)
{
	incstack__step(thread->owner, INCSTACK_STEP_CLAIM);
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

/* Goes safe once no request waits for a draw of this thread. `state` is SAFE, with BUSY if the
 * thread is stopped at a poll. */
static void settle(struct incstack__thread *thread, uint64_t state)
{
	for (;;) {
		serve(thread);
		incstack__step(thread->owner, INCSTACK_STEP_ENTER);
		uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
		if (word & INCSTACK__REQUEST_MASK)
			continue;
		/* release: partners are the acquires of hold and of tell_stop. acquire: partner
		 * is the release of tell_stop, which has set stop_left before. */
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
		incstack__step(thread->owner, INCSTACK_STEP_LEAVE);
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

/* Returns 0 if the calling thread, the owner, runs and is not in its slow path already. */
static int check_running(const struct incstack__thread *thread)
{
	if (!thread)
		return INCSTACK_EINVAL;
	if (thread->busy)
		return INCSTACK_EBUSY;
	/* relaxed: only the owner changes SAFE. */
	uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
	return word & INCSTACK_WORD_SAFE ? INCSTACK_EINVAL : 0;
}

void incstack_safepoint_poll_slow(struct incstack_safepoint_thread *open)
{
	struct incstack__thread *thread = inside(open);
	if (check_running(thread)) /* a safe thread has nothing to poll for */
		return;
	if (incstack__forked(thread->owner)) { /* the requests belong to the parent */
		atomic_store_explicit(&open->word, 0, memory_order_relaxed);
		return;
	}
	thread->busy = true;
	serve(thread);
	while (atomic_load_explicit(&open->word, memory_order_relaxed) & INCSTACK_WORD_STOP) {
		settle(thread, INCSTACK_WORD_SAFE | INCSTACK_WORD_BUSY);
		pass_gate(thread);
		serve(thread);
	}
	/* release: partners are the acquires of tell_stop and arm, as in claim. */
	atomic_fetch_and_explicit(&open->word, ~INCSTACK_WORD_BUSY, memory_order_release);
	thread->busy = false;
}

int incstack_safepoint_enter_slow(struct incstack_safepoint_thread *open)
{
	struct incstack__thread *thread = inside(open);
	int error = check_running(thread);
	if (error)
		return error;
	thread->busy = true;
	settle(thread, INCSTACK_WORD_SAFE);
	thread->busy = false;
	return 0;
}

int incstack_safepoint_leave_slow(struct incstack_safepoint_thread *open)
{
	struct incstack__thread *thread = inside(open);
	if (!thread)
		return INCSTACK_EINVAL;
	if (!(atomic_load_explicit(&open->word, memory_order_relaxed) & INCSTACK_WORD_SAFE))
		return INCSTACK_EINVAL;
	pass_gate(thread);
	return 0;
}

bool incstack__thread_hold(struct incstack__thread *thread)
{
	incstack__step(thread->owner, INCSTACK_STEP_HOLD);
	uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
	do {
		if (!incstack__free(word))
			return false;
		/* acquire: partners are the releases of enter (the fast path) and settle. */
	} while (!atomic_compare_exchange_weak_explicit(
		&thread->open.word, &word, word | INCSTACK_WORD_HELD, memory_order_acquire,
		memory_order_relaxed));
	return true;
}

/* Clears one of the request bits and draws a ticket for it, on behalf of the held thread. */
static void serve_held(struct incstack__thread *thread, uint64_t word)
{
	int i = __builtin_ctzll(word & INCSTACK__REQUEST_MASK);
	incstack__step(thread->owner, INCSTACK_STEP_CLAIM);
	/* acquire: partner is arm. release: the next arm of this bit sees what was done before. */
	if (atomic_compare_exchange_strong_explicit(&thread->open.word, &word,
						    word & ~(UINT64_C(1) << i),
						    memory_order_acq_rel, memory_order_relaxed))
		incstack__request_meet(&thread->owner->requests[i], thread, true);
}

void incstack__thread_unhold(struct incstack__thread *thread)
{
	for (;;) {
		uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
		/* Resume serves the claims on a stopped thread. */
		if ((word & INCSTACK__REQUEST_MASK) && !(word & INCSTACK_WORD_STOP)) {
			serve_held(thread, word);
			continue;
		}
		incstack__step(thread->owner, INCSTACK_STEP_UNHOLD);
		/* release: partner is the acquire of pass_gate. The thread sees what was done on
		 * its behalf. */
		if (!atomic_compare_exchange_strong_explicit(
			    &thread->open.word, &word,
			    word & ~(INCSTACK_WORD_HELD | INCSTACK_WORD_SLEEP),
			    memory_order_release, memory_order_relaxed))
			continue;
		incstack__thread_open_gate(thread, word);
		if (word & INCSTACK_WORD_STOP)
			incstack__thread_arrive(thread->owner);
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

void incstack__thread_unref(struct incstack__thread *thread)
{
	if (--thread->refs > 0)
		return;
	thread->next = thread->owner->unused;
	thread->owner->unused = thread;
}

/* Under `lock`. */
static int make_room(struct incstack_safepoint *safepoint)
{
	if (safepoint->attached < safepoint->capacity)
		return 0;
	uint32_t capacity = safepoint->capacity ? 2 * safepoint->capacity : 16;
	struct incstack__thread **grown =
		realloc(safepoint->threads, capacity * sizeof(struct incstack__thread *));
	if (!grown)
		return INCSTACK_ENOMEM;
	safepoint->threads = grown;
	safepoint->capacity = capacity;
	return 0;
}

static bool add_block(struct incstack_safepoint *safepoint)
{
	struct incstack__block *block = aligned_alloc(INCSTACK__LINE, sizeof(*block));
	if (!block)
		return false;
	block->next = safepoint->blocks;
	safepoint->blocks = block;
	for (size_t i = sizeof(block->lines) / sizeof(*block->lines); i-- > 0;) {
		block->lines[i].thread.next = safepoint->unused;
		safepoint->unused = &block->lines[i].thread;
	}
	return true;
}

/* Under `lock`. */
static struct incstack__thread *allocate(struct incstack_safepoint *safepoint)
{
	if (make_room(safepoint) || (!safepoint->unused && !add_block(safepoint)))
		return NULL;
	struct incstack__thread *thread = safepoint->unused;
	safepoint->unused = thread->next;
	*thread = (struct incstack__thread){.owner = safepoint, .refs = 1};
	return thread;
}

int incstack_safepoint_attach(struct incstack_safepoint *safepoint,
			      struct incstack_safepoint_thread **open)
{
	if (!safepoint || !open)
		return INCSTACK_EINVAL;
	if (incstack__forked(safepoint))
		return INCSTACK_EFORKED;
	pthread_mutex_lock(&safepoint->stop_lock);
	pthread_mutex_lock(&safepoint->lock);
	struct incstack__thread *thread = allocate(safepoint);
	if (thread) {
		thread->open.id = ++safepoint->last_id;
		thread->index = safepoint->attached;
		safepoint->threads[safepoint->attached++] = thread;
	}
	pthread_mutex_unlock(&safepoint->lock);
	pthread_mutex_unlock(&safepoint->stop_lock);
	if (!thread)
		return INCSTACK_ENOMEM;
	*open = &thread->open;
	return 0;
}

/* Gives up all claims on the thread without drawing tickets, because there is no stack left to
 * sample. */
static void give_up_claims(struct incstack__thread *thread)
{
	uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
	do {
		incstack__step(thread->owner, INCSTACK_STEP_GONE);
		/* acq_rel: partners are the release of arm and the acquire of disarm. */
	} while (!atomic_compare_exchange_strong_explicit(
		&thread->open.word, &word, (word & INCSTACK_WORD_STOP) | INCSTACK_WORD_GONE,
		memory_order_acq_rel, memory_order_relaxed));
	for (uint64_t bits = word & INCSTACK__REQUEST_MASK; bits; bits &= bits - 1)
		incstack__request_drop(&thread->owner->requests[__builtin_ctzll(bits)]);
	if (word & INCSTACK_WORD_STOP)
		incstack__thread_arrive(thread->owner);
}

int incstack_safepoint_detach(struct incstack_safepoint_thread *open)
{
	struct incstack__thread *thread = inside(open);
	int error = check_running(thread);
	if (error)
		return error;
	if (incstack__forked(thread->owner))
		return INCSTACK_EFORKED;
	struct incstack_safepoint *safepoint = thread->owner;
	thread->busy = true;
	give_up_claims(thread);
	pthread_mutex_lock(&safepoint->lock);
	struct incstack__thread *last = safepoint->threads[--safepoint->attached];
	safepoint->threads[thread->index] = last;
	last->index = thread->index;
	incstack__thread_unref(thread);
	pthread_mutex_unlock(&safepoint->lock);
	return 0;
}
