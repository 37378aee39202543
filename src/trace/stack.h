/* SPDX-License-Identifier: MIT
 *
 * What is known of a stack: its chain of frame objects, its thunks, its traces and its counters.
 */
#ifndef INCSTACK__STACK_H
#define INCSTACK__STACK_H

#include <incstack/signal.h>

#include "arena.h"

/* The observations from which the barrier distance is chosen (distance.c). */
struct distance {
	uint32_t value;   /* the barrier distance */
	uint32_t returns; /* intercepted since the last sample */
	uint32_t samples; /* in this window */
	uint32_t pause;   /* samples before the next window */
	bool fixed;
	uint32_t last_count; /* how many callers the last sample walked over */
	const object *last_first, *last_end;
	uint16_t popped[INCSTACK_DISTANCE_MAX + 1]; /* samples, by frames popped before each */
};

/* Memory outside of known stacks that the kernel has said is readable. */
struct mapped {
	uintptr_t low, high;
};

/* What became of the requests of signal handlers: struct incstack_signal_stats. */
struct signal_counts {
	uint64_t from_queue, biased, drains;
	_Atomic uint64_t requests, in_handler, merged; /* handlers count these */
	_Atomic uint64_t failed[INCSTACK_FAILURES];
};

/* How many rules a stack remembers by stack address: one for each 16 bytes. */
enum { RULES_AT = 1024 };

/* The fields that every sample reads come first and fill two cache lines. */
struct incstack_stack {
	uintptr_t busy;  /* the stack pointer of the operation in progress, or 0 */
	uintptr_t owner; /* the thread that may use it */
	uintptr_t low, high;
	object *newest;         /* the youngest known caller; set_newest() sets both */
	uintptr_t newest_thunk; /* its thunk if it has a barrier, else a value no slot holds */
	runtime *runtime;
	trace **last;
	uint64_t samples, walked; /* counters: see struct incstack_stats */
	uint64_t observe_at;      /* the number of the next sample that distance.c observes */
	uint32_t slow_reasons;    /* why no sample may take the fast path: see below */
	uint32_t limbo;           /* thunks that an unwinder may still read */
	uint32_t walk_target;     /* frames that a sample should walk over (distance.c) */
	uint32_t walk_limit;      /* callers that it may walk over before it plants a barrier */
	struct arena arena;       /* its first three words end the two lines */
	uint32_t mode;
	int32_t hidden_rule; /* all ones, unless raw objects keep their rule in position */
	uint32_t spare;      /* thunks of this stack, ready to be used */
	uint32_t retired;    /* thunks that must not be reused yet: retired.c */
	uint32_t thunk_low;  /* the numbers of all thunks that the stack ever had lie in */
	uint32_t thunk_high; /* [thunk_low, thunk_high] */
	bool by_embedder;    /* walked by the embedder, with the embedder's own barriers */
	bool anywhere;       /* bounds are unknown: a sample may be on any stack */
	bool no_memory;      /* whether the last walk cut an object for lack of memory */
	struct distance distance;
	struct incstack_stats stats; /* except samples and walked, which are above */
	object *first_known;         /* the youngest object that the last walk found known */
	object *cut;                 /* the object at which the last walk was cut, if any */
	uint64_t retrieved;          /* samples that were retrieved */
	uint64_t thinned;            /* stats.planted when the barriers were last thinned */
	uint64_t all_new;            /* samples whose objects are all new; others are `shared` */
	uintptr_t thread;            /* the thread that began on it, or 0: see shared.h */
	void *identity;              /* the embedder's name of this stack */
	struct mapped mapped;        /* in this walk; with `anywhere`, the same as [low, high) */
	uint64_t rules_invalidated;  /* the runtime's count, as last seen by mode validate */
	struct queue *queue;         /* requests that wait for a poll; may be null */
	struct incstack_queue_hooks hooks;
	struct signal_counts signals;
	uint32_t rule_at[RULES_AT]; /* plain rules only: see predicted_rule() */
};
_Static_assert(offsetof(struct incstack_stack, arena) == 104, "two lines, with three words of it");
_Static_assert(offsetof(struct incstack_stack, busy) == INCSTACK__STACK_BUSY, "see layout.h");

enum {
	SLOW_WALK = 1,         /* the embedder walks, or mode validate compares frames, or the
			    * bounds of the stack are unknown */
	SLOW_RULES_WANTED = 2, /* a signal handler missed rules that must be looked up */
};

static inline trace **first_trace(const stack *s)
{
	return (trace **)&s->arena.first->tree.traces;
}
static inline bool has_barriers(const stack *s)
{
	return s->mode == INCSTACK_MODE_PATCH || s->mode == INCSTACK_MODE_EMBEDDER;
}
static inline bool inside(const stack *s, uintptr_t address)
{
	return address >= s->low && address < s->high;
}
static inline void set_newest(stack *s, object *o)
{
	s->newest = o;
	s->newest_thunk = barrier_word(o);
}

void incstack__cut(stack *s, object *o);
void incstack__cut_walk(stack *s, object *o, bool no_memory);

#endif
