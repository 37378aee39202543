/* SPDX-License-Identifier: MIT
 *
 * The sampler: a thread that asks the safepoint coordinator for n samples at
 * every tick of a clock. What a sample is, and so which technique of the papers
 * this is, says the operation: a full walk or incstack_sample, in partial or in
 * full safepoints (Gnedt 2014, chapter 5; ICPE'15, section 7). Independent of
 * tracing. Functions state Thread / Signal / Allocates / Blocks as in incstack.h.
 */
#ifndef INCSTACK_SAMPLER_H
#define INCSTACK_SAMPLER_H

#include <incstack/safepoint.h>

INCSTACK_BEGIN_C

struct incstack_sampler;

#define INCSTACK_SAMPLER_INTERVAL_MIN UINT64_C(10000) /* ns */
#define INCSTACK_SAMPLER_BUCKETS 40

enum {
	INCSTACK_SAMPLER_WAITING = 1u << 0, /* waiting threads are sampled, too */
	/* Every tick stops all threads, and the sampler samples for them: the
	 * baseline that partial safepoints are measured against. */
	INCSTACK_SAMPLER_FULL = 1u << 1,
	/* The sampler, and with it retrieve, runs at the lowest real-time priority, if
	 * the process may have one. Where more threads compute than there are
	 * processors, the kernel wakes an ordinary thread too late for short intervals. */
	INCSTACK_SAMPLER_REAL_TIME = 1u << 2,
};

struct incstack_sampler_options {
	size_t size; /* sizeof(struct incstack_sampler_options) */
	struct incstack_safepoint *safepoint;
	uint64_t interval_ns;     /* of wall time between ticks; at least INTERVAL_MIN */
	uint64_t retrieve_ns;     /* between calls of retrieve; 0: never */
	uint64_t stop_timeout_ns; /* FULL: when a stop is given up; 0: after a second */
	uint32_t n;               /* samples at each tick; 0: as many as there are processors */
	uint32_t flags;           /* INCSTACK_SAMPLER_* */
	incstack_operation *operation; /* ticket->request is null when FULL */
	/* On the sampler's thread, which is not attached; ticks that pass meanwhile
	 * are missed. May block. Null when retrieve_ns is 0. */
	void (*retrieve)(struct incstack_sampler *sampler, void *argument);
	void *argument; /* of both */
};

/* Ticks lie on a grid of absolute times: how long a request took, or how late the
 * sampler was woken, moves no later tick. A request that is still open at the next
 * tick is closed then. Ticks that were due when set_interval or stop is called and have
 * no request count as missed. ticks == requested + missed; and once the sampler has been
 * stopped, wanted == taken + lost. */
struct incstack_sampler_stats {
	size_t size;        /* sizeof(struct incstack_sampler_stats), set by the caller */
	uint64_t ticks;     /* times at which a request was due */
	uint64_t requested; /* requests made */
	uint64_t late;      /* of those: made more than half an interval after they were due */
	uint64_t missed;    /* ticks without a request: the sampler came after the next one,
	                     * all requests of the coordinator were in use, a stop was given up */
	uint64_t wanted;    /* samples: n at each tick, or as many threads as there were */
	uint64_t taken;
	uint64_t lost;      /* wanted, and never taken */
	uint64_t retrieves; /* calls of retrieve */
	uint64_t real_time; /* 1: it has, or last had, a real-time priority */
	/* Samples that began at least 2^i ns, and less than twice that, after they were due. */
	uint64_t latency[INCSTACK_SAMPLER_BUCKETS];
};

/* Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_sampler_create(const struct incstack_sampler_options *options,
					 struct incstack_sampler **sampler);

/* INCSTACK_EBUSY while it is started, except in a child of fork.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_sampler_destroy(struct incstack_sampler *sampler);

/* Starts the thread, with all signals blocked; the first tick is an interval from
 * now. INCSTACK_EBUSY when it is started, INCSTACK_ENOMEM when there is no thread to be had.
 * A child of fork has no sampler: INCSTACK_EFORKED, as from stop and set_interval.
 * Thread: any. Signal: no. Allocates: may. Blocks: never. */
INCSTACK_API int incstack_sampler_start(struct incstack_sampler *sampler);

/* Returns when the thread and the last operation have ended; it may be started
 * again. INCSTACK_EINVAL when it is not started.
 * Thread: any that is not attached, or safe; not an operation or retrieve.
 * Signal: no. Allocates: never. Blocks: yes. */
INCSTACK_API int incstack_sampler_stop(struct incstack_sampler *sampler);

/* The next tick is one new interval from now, whether it is started or not.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_sampler_set_interval(struct incstack_sampler *sampler,
					       uint64_t interval_ns);

/* Counts since it was created.
 * Thread: any. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_sampler_stats(const struct incstack_sampler *sampler,
					struct incstack_sampler_stats *stats);

INCSTACK_END_C

#endif
