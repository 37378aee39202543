/* SPDX-License-Identifier: MIT
 *
 * Attaches threads to the safepoint coordinator and detaches them.
 * Model: tests/model/ticket.pml; STEP_x is its step x.
 */
#include <stdlib.h>

#include "safepoint.h"

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
		block->lines[i].thread = (struct incstack__thread){
			.owner = safepoint,
			.next = safepoint->unused,
		};
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
	/* `gate` and `owner` stay, because the thread that let the record's former thread pass may
	 * still be about to open the gate. A gate that opens once too often does no harm. */
	thread->open = (struct incstack_thread){0};
	thread->refs = 1;
	thread->busy = thread->ran = false;
	thread->self = incstack__self();
	thread->mark = 0;
	return thread;
}

int incstack_safepoint_attach(struct incstack_safepoint *safepoint, struct incstack_thread **open)
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
		incstack__step(thread->owner, INCSTACK__STEP_GONE);
		/* acq_rel: partners are the release of arm and the acquire of disarm. */
	} while (!atomic_compare_exchange_strong_explicit(
		&thread->open.word, &word, (word & INCSTACK_WORD_STOP) | INCSTACK_WORD_GONE,
		memory_order_acq_rel, memory_order_relaxed));
	for (uint64_t bits = word & INCSTACK__REQUEST_MASK; bits; bits &= bits - 1)
		incstack__request_drop(&thread->owner->requests[__builtin_ctzll(bits)]);
	if (word & INCSTACK_WORD_STOP)
		incstack__thread_arrive(thread->owner);
}

int incstack_thread_adopt(struct incstack_thread *open)
{
	struct incstack__thread *thread = incstack__thread_of(open);
	if (!thread)
		return INCSTACK_EINVAL;
	if (incstack__forked(thread->owner))
		return INCSTACK_EFORKED;
	if (thread->busy)
		return INCSTACK_EBUSY;
	thread->self = incstack__self();
	return 0;
}

int incstack_thread_detach(struct incstack_thread *open)
{
	struct incstack__thread *thread = incstack__thread_of(open);
	int error = incstack__check_owner(thread);
	if (!error)
		error = incstack__check_running(thread);
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
