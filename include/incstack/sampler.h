/* SPDX-License-Identifier: MIT
 *
 * The sampler: a thread that requests n samples from the safepoint coordinator at
 * every tick of a clock. The operation decides what a sample is: a full walk or
 * incstack_stack_sample. It and INCSTACK_SAMPLER_FULL select one of the four techniques
 * of the papers (Gnedt 2014, chapter 5; ICPE'15, section 7). Independent of
 * tracing. Conventions as in incstack.h.
 */
#ifndef INCSTACK_SAMPLER_H
#define INCSTACK_SAMPLER_H

#include <incstack/safepoint.h>

INCSTACK_BEGIN_C

/* A thread that starts requests at regular times. */
struct incstack_sampler;

#define INCSTACK_SAMPLER_INTERVAL_MIN UINT64_C(10000) /* the shortest interval, in ns */

/* The number of elements of incstack_sampler_stats.latency. */
#define INCSTACK_SAMPLER_BUCKETS 40

/* The flags of a sampler. */
enum {
	INCSTACK_SAMPLER_WAITING = 1u << 0, /* waiting threads are sampled, too */
	/* Every tick stops all threads, and the sampler runs the operation for them:
	 * the baseline to compare partial safepoints with. */
	INCSTACK_SAMPLER_FULL = 1u << 1,
	/* The sampler's thread, which also calls retrieve, runs at the lowest real-time
	 * priority if the process may have one. If more threads compute than there are
	 * processors, the kernel wakes an ordinary thread too late for short intervals. */
	INCSTACK_SAMPLER_REAL_TIME = 1u << 2,
};

/* The options of a sampler. */
struct incstack_sampler_options {
	size_t size;                          /* sizeof(struct incstack_sampler_options) */
	struct incstack_safepoint *safepoint; /* the coordinator of the threads */
	uint64_t interval_ns;                 /* wall time between ticks; at least INTERVAL_MIN */
	uint64_t retrieve_ns;                 /* time between calls of retrieve; 0: never called */
	uint64_t stop_timeout_ns;             /* FULL: the time limit for a stop; 0: one second */
	uint32_t n;     /* samples at each tick; 0: as many as there are processors */
	uint32_t flags; /* INCSTACK_SAMPLER_* */
	incstack_operation *operation; /* ticket->request is null when FULL */
	/* Called on the sampler's thread, which is not attached. It may block; ticks
	 * that pass during the call are missed. Null if retrieve_ns is 0. */
	void (*retrieve)(struct incstack_sampler *sampler, void *argument);
	void *argument; /* passed to both */
};

/* Counters of a sampler. Ticks lie on a grid of absolute times. Neither a long request nor a
 * late wake-up delays later ticks. A request that is still open at the next tick is closed
 * then. A tick that is due when the sampler is stopped, and that has no request, counts as
 * missed. Always: ticks == requested + missed. When the sampler was stopped:
 * wanted == taken + lost. */
struct incstack_sampler_stats {
	size_t size;        /* sizeof(struct incstack_sampler_stats), set by the caller */
	uint64_t ticks;     /* times at which a request was due */
	uint64_t requested; /* requests made */
	uint64_t late;      /* requests made more than half an interval after they were due */
	uint64_t missed;    /* ticks without a request: the sampler woke after the next tick, all
	                     * requests of the coordinator were in use, or a stop timed out */
	uint64_t wanted;    /* samples: per tick n, or the number of threads if there are fewer */
	uint64_t taken;     /* samples taken */
	uint64_t lost;      /* wanted samples that were never taken */
	uint64_t retrieves; /* calls of retrieve */
	uint64_t real_time; /* 1: the thread has, or last had, a real-time priority */
	/* latency[i]: samples that began 2^i ns or more, but less than 2^(i+1) ns, after they
	 * were due. The last one also counts all later samples. */
	uint64_t latency[INCSTACK_SAMPLER_BUCKETS];
};

/* Creates a sampler and starts its thread, with all signals blocked. The first tick is one interval
 * from now. Errors: EINVAL; ENOMEM, also if no thread could be created.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_sampler_create(const struct incstack_sampler_options *options,
					 struct incstack_sampler **sampler);

/* Stops the sampler and frees it; null is allowed. It returns after the thread and the last operation have
 * ended. If `last` is not null, and its `size` is right, *last gets the final counters. A child of fork,
 * which lacks the thread, gets those of the time of the fork.
 * Thread: any that is not attached, or is waiting, once; not an operation or retrieve.
 * Signal: no. Allocates: never. Blocks: until it is stopped. */
INCSTACK_API void incstack_sampler_destroy(struct incstack_sampler *sampler,
					   struct incstack_sampler_stats *last);

/* Copies the counters since creation to *stats. Errors: EINVAL.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_sampler_stats(const struct incstack_sampler *sampler,
					struct incstack_sampler_stats *stats);

INCSTACK_END_C

#endif
