/* SPDX-License-Identifier: MIT
 *
 * Transitions of a thread's word that concern no request: held, let through the gate, counted as
 * arrived at a full safepoint. Each is one atomic operation on the word (S1).
 * Model: tests/model/ticket.pml; STEP_x is its step x.
 */
#include "safepoint.h"

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

bool incstack__thread_hold(struct incstack__thread *thread)
{
	incstack__step(thread->owner, INCSTACK__STEP_HOLD);
	uint64_t word = atomic_load_explicit(&thread->open.word, memory_order_relaxed);
	do {
		if (!incstack__free(word))
			return false;
		/* acquire: partners are the releases of wait_begin (the fast path) and settle. */
	} while (!atomic_compare_exchange_weak_explicit(
		&thread->open.word, &word, word | INCSTACK_WORD_HELD, memory_order_acquire,
		memory_order_relaxed));
	return true;
}

void incstack__thread_unref(struct incstack__thread *thread)
{
	if (--thread->refs > 0)
		return;
	thread->next = thread->owner->unused;
	thread->owner->unused = thread;
}
