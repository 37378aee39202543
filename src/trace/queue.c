/* SPDX-License-Identifier: MIT
 *
 * The queue of a stack: a ring of requests. Signal handlers of the owner add to it, at any
 * instruction of the owner, also inside each other and inside a drain. Nothing waits, because a
 * place is reserved by one atomic addition, and it belongs to whoever changes its state. A place
 * that a jump out of a handler left half written is skipped and counted.
 */
#include "operation.h"
#include "queue.h"
#include "signals.h"

static uint64_t load(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_acquire);
}

static struct request *place(struct queue *q, uint64_t number)
{
	return &q->places[number % q->capacity];
}

/* The number of the oldest request. A stack without a queue is treated as a stack with an empty
 * queue. */
static uint64_t oldest(const struct queue *q)
{
	return q ? load(&q->head) : 0;
}

/* Returns the request with this number and adds 1 to the number. Returns null if there is no such
 * request. */
static struct request *next(struct queue *q, uint64_t *number)
{
	return q && *number != load(&q->tail) ? place(q, (*number)++) : NULL;
}

static bool change(struct request *r, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&r->state, &from, to, memory_order_acq_rel,
						       memory_order_acquire);
}

enum { PROMISES = INCSTACK_TOP_STAYS | INCSTACK_TOP_CALLER_STAYS };

/* A number that differs between two moments if frames were captured after the first moment. */
static uint64_t known_now(const stack *s)
{
	return (uint64_t)(uintptr_t)s->newest + s->samples + s->stats.returns + s->stats.unwound;
}

static bool equal(const struct queued *x, const struct queued *y)
{
	const struct incstack_top *a = &x->top, *b = &y->top;
	return a->pc == b->pc && a->sp == b->sp && a->fp == b->fp && a->slot == b->slot &&
	       a->flags == b->flags && x->caller == y->caller;
}

/* Adds the request to the youngest request if both are equal. */
static bool merge(stack *s, struct queue *q, const struct queued *what)
{
	uint64_t tail = load(&q->tail);
	if (tail == load(&q->head))
		return false;
	struct request *r = place(q, tail - 1);
	if (!change(r, PLACE_WAITING, PLACE_WRITING))
		return false;
	bool same = r->known == known_now(s) && equal(&r->what, what);
	if (same) {
		r->what.weight += what->weight;
		r->what.count += what->count;
	}
	if (!change(r, PLACE_WRITING, PLACE_WAITING) && same)
		count_failure(s, INCSTACK_FAILED_LEFT, what->count);
	else if (same)
		count_requests(&s->signals.merged, what->count);
	return same;
}

/* Reserves the next place, or returns null if there is none. */
static struct request *reserve(struct queue *q)
{
	uint64_t tail = load(&q->tail);
	do {
		if (tail - load(&q->head) >= q->capacity)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&q->tail, &tail, tail + 1, memory_order_acq_rel, memory_order_acquire));
	struct request *r = place(q, tail);
	atomic_store_explicit(&r->state, PLACE_WRITING, memory_order_relaxed);
	return r;
}

/* Called in a signal handler of the owner. Returns false if the queue is full. */
bool incstack__queue_put(stack *s, const struct queued *what)
{
	struct queue *q = s->signals.queue;
	atomic_fetch_add_explicit(&q->attempts, 1, memory_order_relaxed);
	if (merge(s, q, what))
		return true;
	struct request *r = reserve(q);
	if (!r)
		return false;
	r->known = known_now(s);
	r->what = *what;
	if (!change(r, PLACE_WRITING, PLACE_WAITING))
		count_failure(s, INCSTACK_FAILED_LEFT, what->count);
	return true;
}

/* Removes the oldest request. incstack__queue_settled() must follow when it is counted. Returns
 * false if there is none. */
bool incstack__queue_take(stack *s, struct queued *what)
{
	struct queue *q = s->signals.queue;
	for (uint64_t head = load(&q->head); head != load(&q->tail); head++) {
		struct request *r = place(q, head);
		bool whole = change(r, PLACE_WAITING, PLACE_WRITING);
		if (whole) {
			*what = r->what;
			q->in_hand = what->count;
		}
		atomic_signal_fence(memory_order_seq_cst);
		atomic_store_explicit(&r->state, PLACE_EMPTY, memory_order_release);
		atomic_store_explicit(&q->head, head + 1, memory_order_release);
		if (whole)
			return true;
		count_failure(s, INCSTACK_FAILED_LEFT, 1);
	}
	return false;
}

void incstack__queue_settled(stack *s)
{
	s->signals.queue->in_hand = 0;
}

/* Forgets all requests. */
void incstack__queue_drop(stack *s)
{
	struct queued what;
	while (s->signals.queue && incstack__queue_take(s, &what)) {
		count_failure(s, INCSTACK_FAILED_DROPPED, what.count);
		incstack__queue_settled(s);
	}
}

/* From now on no request promises that a frame stays. */
void incstack__queue_unsettle(stack *s)
{
	uint64_t number = oldest(s->signals.queue);
	for (struct request *r; (r = next(s->signals.queue, &number));)
		r->what.top.flags &= ~(uint32_t)PROMISES;
}

/* The frames below sp were popped. Their callers begin at sp. */
void incstack__queue_popped(stack *s, uintptr_t sp)
{
	uint64_t number = oldest(s->signals.queue);
	for (struct request *r; (r = next(s->signals.queue, &number));) {
		struct incstack_top *top = &r->what.top;
		if ((top->slot ? top->slot : top->sp) >= sp)
			continue;
		top->flags &= ~(uint32_t)PROMISES;
		top->slot = 0;
		top->sp = sp - 1;
	}
}

/* A jump out of a handler may have popped any frame, and left a drain that had removed a
 * request. */
void incstack__queue_reset(stack *s)
{
	incstack__queue_unsettle(s);
	if (!s->signals.queue)
		return;
	count_failure(s, INCSTACK_FAILED_LEFT, s->signals.queue->in_hand);
	s->signals.queue->in_hand = 0;
}

/* The stack was moved. */
void incstack__queue_moved(stack *s, uintptr_t delta)
{
	uint64_t number = oldest(s->signals.queue);
	for (struct request *r; (r = next(s->signals.queue, &number));) {
		struct incstack_top *top = &r->what.top;
		bool fp_inside = inside(s, top->fp);
		top->sp += delta;
		top->fp += fp_inside ? delta : 0;
		top->slot += top->slot ? delta : 0;
	}
}

void incstack__queue_free(stack *s)
{
	struct queue *q = s->signals.queue;
	s->signals.queue = NULL;
	if (q)
		incstack__release(s->runtime, q, sizeof(*q) + q->capacity * sizeof(q->places[0]));
}

/* The sum of the counts of its elements. Called by the owner outside of handlers. */
uint64_t incstack__queue_requests(const stack *s)
{
	uint64_t sum = s->signals.queue ? s->signals.queue->in_hand : 0;
	uint64_t number = oldest(s->signals.queue);
	for (struct request *r; (r = next(s->signals.queue, &number));)
		sum += r->what.count;
	return sum;
}

/* ---- the public interface -------------------------------------------------------- */

/* Makes an empty queue. Returns null if there is no memory. */
static struct queue *make(stack *s, uint32_t capacity)
{
	struct queue *q = incstack__allocate(s->runtime,
					     sizeof(*q) + (size_t)capacity * sizeof(q->places[0]));
	if (!q)
		return NULL;
	*q = (struct queue){.capacity = capacity};
	for (uint32_t i = 0; i < capacity; i++)
		atomic_init(&q->places[i].state, PLACE_EMPTY);
	return q;
}

/* Moves the requests of the stack's queue, as many as fit, the oldest first. */
static void move_requests(stack *s, struct queue *to)
{
	struct queued what;
	while (s->signals.queue && load(&to->tail) < to->capacity &&
	       incstack__queue_take(s, &what)) {
		struct request *r = reserve(to);
		r->what = what;
		change(r, PLACE_WRITING, PLACE_WAITING);
		incstack__queue_settled(s);
	}
	incstack__queue_drop(s);
}

/* Replaces the queue. Signals are blocked, because a handler must not meet half of it. */
static void replace(stack *s, struct queue *new)
{
	uint64_t before;
	bool blocked = incstack__signals_block(&before);
	if (new)
		move_requests(s, new);
	else
		incstack__queue_drop(s);
	incstack__queue_free(s);
	s->signals.queue = new;
	incstack__signals_restore(blocked, &before);
}

int incstack_stack_queue_resize(struct incstack_stack *s, uint32_t capacity)
{
	enum { CAPACITY_MAX = 1 << 20 };
	int error = enter(s);
	if (error)
		return error;
	struct queue *new = capacity &&capacity <= CAPACITY_MAX ? make(s, capacity) : NULL;
	if (capacity > CAPACITY_MAX)
		error = INCSTACK_EINVAL;
	else if (capacity && !new)
		error = INCSTACK_ENOMEM;
	else
		replace(s, new);
	leave(s);
	return error;
}
