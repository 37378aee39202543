/* SPDX-License-Identifier: MIT
 *
 * The queue of a stack: requests of signal handlers that wait for a poll.
 */
#ifndef INCSTACK__QUEUE_H
#define INCSTACK__QUEUE_H

#include <incstack/signal.h>

#include "stack.h"

/* The states of a place. Only the handler or drain that changes EMPTY or WAITING to WRITING may
 * write there. */
enum { PLACE_EMPTY, PLACE_WRITING, PLACE_WAITING };

/* What a request asks for. */
struct queued {
	uint64_t id;             /* the identifier of its first request */
	uint64_t weight;         /* the sum of the weights of its requests */
	struct incstack_top top; /* what `interrupted` wrote */
	uintptr_t caller; /* with INCSTACK_TOP_CALLER_STAYS: the return address; otherwise 0 */
	uint32_t count;   /* how many equal requests it stands for */
	int32_t reason;   /* why it was not sampled at once: an error of incstack_stack_sample */
};

struct request {
	_Atomic uint32_t state;
	uint64_t known; /* what was known of the stack; equal requests have the same value */
	struct queued what;
};

/* A ring. Handlers add at the tail, which only they move. The drain, which a handler may
 * interrupt, removes at the head, which only it moves. */
struct queue {
	_Atomic uint64_t head, tail;
	uint32_t capacity;
	_Atomic uint32_t attempts; /* since the last drain */
	uint32_t in_hand;          /* requests that the drain has removed and not yet counted */
	struct request places[];
};

bool incstack__queue_put(stack *s, const struct queued *what);
bool incstack__queue_take(stack *s, struct queued *what);
void incstack__queue_settled(stack *s);
void incstack__queue_drop(stack *s);
void incstack__queue_reset(stack *s);
void incstack__queue_unsettle(stack *s);
void incstack__queue_popped(stack *s, uintptr_t sp);
void incstack__queue_moved(stack *s, uintptr_t delta);
uint64_t incstack__queue_requests(const stack *s);
void incstack__queue_free(stack *s);

/* How many elements the queue has. It is called at every poll. */
static inline uint32_t incstack__queue_pending(const stack *s)
{
	const struct queue *q = s->signals.queue;
	if (__builtin_expect(!q, 1))
		return 0;
	/* acquire: pairs with the handler's addition to the tail. */
	return (uint32_t)(atomic_load_explicit(&q->tail, memory_order_acquire) -
			  atomic_load_explicit(&q->head, memory_order_acquire));
}

/* The addition is atomic because handlers also count, and handlers that interrupt other
 * handlers. */
static inline void count_requests(_Atomic uint64_t *counter, uint32_t requests)
{
	atomic_fetch_add_explicit(counter, requests, memory_order_relaxed);
}

static inline void count_failure(stack *s, enum incstack_signal_failure why, uint32_t requests)
{
	count_requests(&s->signals.failed[why], requests);
}

#endif
