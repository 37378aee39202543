/* SPDX-License-Identifier: MIT
 *
 * Samples in signal handlers: one call for a handler, and the queue of a stack.
 *
 * A sampler that waits for a poll sees only the places where code polls, so its profiles are
 * biased. A signal can interrupt any instruction, but not every interrupted state can be
 * described. So the handler samples at once where the embedder says that the state is described.
 * Elsewhere it notes the top frame in the stack's queue. The next poll drains the queue: each
 * request becomes a trace whose top is the interrupted frame, and whose callers come from the
 * incremental state (Bechberger, "Taming the Bias: Unbiased Safepoint-Based Stack Walking";
 * JEP 518 does the same with a full walk for each request).
 *
 * Conventions as in incstack.h. docs/signals.md is a guide.
 */
#ifndef INCSTACK_SIGNAL_H
#define INCSTACK_SIGNAL_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* What incstack_stack_sample_signal returns if it has put the request into the queue. */
#define INCSTACK_QUEUED 1

/* Takes a sample of what a signal interrupted. `ucontext` is the third argument of the signal
 * handler. The embedder's `interrupted` reads it. A state that is described is sampled at once:
 * the result is 0. If it is not described, or if that sample fails (the signal interrupted an
 * operation on the stack, a rule is unknown, or there is no room), the request goes into the
 * queue of the stack: the result is INCSTACK_QUEUED, and the caller should make the thread poll
 * soon. A request is added to its predecessor in the queue if it has the same top and no frame was
 * captured in between. The trace then has the sum of their weights and the identifier of the
 * first. Without a queue the sample is refused. Each request is in one counter
 * of struct incstack_signal_stats.
 * Errors: EINVAL, also if the table has no `interrupted`; ETHREAD; ELIMIT: the queue is full; the
 * errors of `interrupted`; without a queue also EBUSY, EUNWIND, EROOM.
 * Thread: owner. Signal: yes. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_sample_signal(struct incstack_stack *stack, uint64_t id,
					      uint64_t weight, const void *ucontext);

/* Sets the capacity of the queue, in requests; 0 removes it. A new stack has none. The requests
 * that are in the queue stay, the oldest first; those that do not fit are counted as dropped.
 * Errors: EINVAL, also for more than 2^20; ETHREAD, EBUSY, ENOMEM.
 * Thread: owner. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_queue_resize(struct incstack_stack *stack, uint32_t capacity);

/* Turns the requests in the queue into traces, oldest first, and makes room for them. Without a
 * request it does nothing, and is fast enough to be called at every poll.
 * incstack_stack_sample_at_poll calls it. `poll` is the top frame now, as for incstack_stack_sample. An
 * embedder that promises INCSTACK_TOP_STAYS or INCSTACK_TOP_CALLER_STAYS calls it at every poll,
 * before that poll changes the stack or returns. Only a drain that finds a request checks whether a walk may
 * begin at `poll`.
 * Errors: EINVAL, ETHREAD, EBUSY; ENOMEM, ELIMIT, EROOM: no room; the requests that remain stay in
 * the queue, and their traces will be biased.
 * Algorithm: the frames from `poll` to the first known one are captured once, by the walk of a
 * sample, for all requests.
 * Thread: owner. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_stack_queue_drain(struct incstack_stack *stack,
					    const struct incstack_top *poll);

/* Why a request has no trace. */
enum incstack_signal_failure {
	INCSTACK_FAILED_STATE = 0, /* `interrupted` could not tell what was interrupted */
	INCSTACK_FAILED_UNWIND,    /* no queue, and the state is not described */
	INCSTACK_FAILED_BUSY,      /* no queue, and an operation on the stack was interrupted */
	INCSTACK_FAILED_ROOM,      /* no queue, and no room was reserved */
	INCSTACK_FAILED_FULL,      /* the queue was full */
	INCSTACK_FAILED_OWNER,     /* another thread owned the stack */
	INCSTACK_FAILED_LEFT,      /* a jump out of a handler left it half done */
	INCSTACK_FAILED_GONE,      /* no frame of that time was left when the queue was drained */
	INCSTACK_FAILED_DROPPED,   /* in the queue of a stack that was forgotten, or resized */
	INCSTACK_FAILURES,         /* the number of reasons */
};

/* What became of the calls of incstack_stack_sample_signal on one stack. Every request is in exactly one
 * of in_handler, from_queue, biased, pending and failed. */
struct incstack_signal_stats {
	size_t size;         /* sizeof(struct incstack_signal_stats), set by the caller */
	uint64_t requests;   /* calls */
	uint64_t in_handler; /* sampled at once */
	uint64_t from_queue; /* their traces have INCSTACK_OBJECT_LATE and _INTERRUPTED */
	uint64_t biased;     /* their traces have INCSTACK_OBJECT_LATE alone */
	uint64_t pending;    /* in the queue */
	uint64_t failed[INCSTACK_FAILURES]; /* by enum incstack_signal_failure */
	uint64_t merged;   /* added to an equal predecessor; they are also counted above */
	uint64_t drains;   /* of a queue that was not empty */
	uint32_t capacity; /* of the queue */
	uint32_t attempts; /* to put a request into the queue since the last drain */
};

/* Copies the counters to *stats. Errors: EINVAL.
 * Thread: owner, or any while no operation is in progress. Signal: no.
 * Allocates: never. Blocks: never. */
INCSTACK_API int incstack_stack_signal_stats(const struct incstack_stack *stack,
					     struct incstack_signal_stats *stats);

INCSTACK_END_C

#endif
