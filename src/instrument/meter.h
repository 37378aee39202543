/* SPDX-License-Identifier: MIT
 *
 * The data of a meter. Each thread writes its own tree with plain stores; others only read it, for snapshots.
 */
#ifndef INCSTACK__INSTRUMENT_METER_H
#define INCSTACK__INSTRUMENT_METER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <incstack/instrument.h>

#include "clock.h"
#include "copy.h"

/* The price of events, in ticks. */
struct price {
	double inner, outer, counted, error;
};

struct incstack_meter_method {
	_Atomic uint8_t mode;
	_Atomic bool is_root;
	_Atomic bool has_run;
	uint64_t function;
	struct incstack_meter_method *older;
	/* For incstack_meter_adapt: */
	struct usage {
		uint64_t timed, counted;
		double own; /* ticks */
	} seen, now;
};

/* A context. `hot` is the callee that was called last. Number 0 is what is outside of the subgraph. */
struct node {
	struct incstack_meter_method *method;
	uint32_t parent;
	uint32_t hot;
	_Atomic uint64_t timed;
	_Atomic uint64_t ticks; /* measured, of timed calls */
	_Atomic uint64_t
		inside_timed; /* timed calls that began while the clock ran for this node */
	_Atomic uint64_t inside_counted; /* counted calls, likewise */
	_Atomic uint64_t counted;
	_Atomic uint64_t waits; /* ticks */
	_Atomic uint64_t sampled_ns;
	_Atomic uint64_t by_samples_ns; /* of these, in calls that are only counted */
	_Atomic uint64_t
		given_ns; /* the clock ran for this node, but samples were in counted calls */
};

/* An open call. */
struct open {
	struct incstack_meter_method *method;
	uintptr_t frame;
	struct node *node;
	struct node *clocked; /* for which the clock ran before */
	bool is_timed;
};

struct incstack_meter_thread {
	uint32_t open;        /* calls, without those that are too deep */
	uint32_t beyond;      /* calls that are too deep */
	_Atomic bool is_busy; /* an event is in progress */
	uint8_t stopped[2];   /* how often, for each reason */
	uint32_t flags;
	uint64_t stamp; /* the last reading of the clock */
	_Atomic(struct open *) top;
	struct node *clocked;
	struct clock clock;
	struct open *opens; /* the first one is for the outside */
	struct node *nodes;
	uint32_t *table; /* numbers of nodes, by parent and method; 0: free */
	uint32_t mask;
	uint32_t node_limit, depth_limit;
	_Atomic uint32_t node_count;
	_Atomic uint64_t unseen, unmatched, nested, too_deep, no_room, paused;
	uint64_t id;
	struct incstack_meter *meter;
	struct incstack_meter_thread *older, *younger;
};

struct incstack_meter {
	struct incstack_meter_options options;
	struct clock clock;
	pthread_mutex_t lock; /* of all below */
	struct incstack_meter_thread *threads;
	uint64_t thread_count;
	struct incstack_meter_method *methods;
	uint32_t method_count;
	struct copy ended;                /* the sum of ended threads */
	struct incstack_meter_stats gone; /* their counters */
	struct price price;
	uint64_t began, began_ns; /* the clock and the kernel's clock at the beginning */
	double seen_ticks;        /* in the subgraph, at the last incstack_meter_adapt */
};

static inline void add_to(_Atomic uint64_t *sum, uint64_t more)
{
	/* relaxed: only this thread writes it, and a snapshot may miss the newest events. */
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + more,
			      memory_order_relaxed);
}

static inline uint64_t value_of(const _Atomic uint64_t *sum)
{
	return atomic_load_explicit(sum, memory_order_relaxed);
}

static inline void meter_lock(struct incstack_meter *meter)
{
	(void)pthread_mutex_lock(&meter->lock);
}

static inline void meter_unlock(struct incstack_meter *meter)
{
	(void)pthread_mutex_unlock(&meter->lock);
}

/* Returns how many ns a tick takes. The lock is not needed. */
double incstack__meter_tick_ns(const struct incstack_meter *meter);
/* Returns the calibrated own time of timed calls, in ticks. It may be negative. */
double incstack__meter_own(const struct price *price, const struct copied *node);
/* Sums all threads, the ended ones first. The lock is held. Errors: ENOMEM. */
int incstack__meter_sum(struct incstack_meter *meter, bool per_thread, struct copy *sum);

/* A thread that is in no list, with limits of its own. */
int incstack__meter_thread_make(struct incstack_meter *meter, uint32_t contexts, uint32_t depth,
				struct incstack_meter_thread **made);
void incstack__meter_thread_free(struct incstack_meter_thread *thread);
/* Ends all open calls of a thread. */
void incstack__meter_thread_finish(struct incstack_meter_thread *thread);
void incstack__meter_add_counters(struct incstack_meter_stats *to,
				  const struct incstack_meter_thread *thread, double tick_ns);

#endif
