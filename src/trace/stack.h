/* SPDX-License-Identifier: MIT
 *
 * What is known of a stack: its chain of frame objects, its thunks, its traces and its counters.
 */
#ifndef INCSTACK__STACK_H
#define INCSTACK__STACK_H

#include <incstack/signal.h>

#include "arena.h"

/* Inside the library, the barrier distance is the number of frames between the top and the frame
 * that gets the barrier: one less than in struct incstack_options. */
enum { MOST_BETWEEN = INCSTACK_DISTANCE_MAX - 1 };

/* The observations from which the barrier distance is chosen (distance.c). */
struct distance {
	uint32_t value;   /* the barrier distance, up to MOST_BETWEEN */
	uint32_t returns; /* intercepted since the last sample */
	uint32_t samples; /* in this window */
	uint32_t pause;   /* samples before the next window */
	bool fixed;
	uint32_t last_count; /* how many callers the last sample walked over */
	const object *last_first, *last_end;
	uint16_t popped[MOST_BETWEEN + 1]; /* samples, by frames popped before each */
};

/* Memory outside of known stacks that the kernel has said is readable. */
struct mapped {
	uintptr_t low, high;
};

/* The bounds of a stack; both 0: unknown. */
struct bounds {
	uintptr_t low, high;
};

/* The thunks of a stack, besides those of live barriers and those in limbo. */
struct own_thunks {
	uint32_t spare;   /* ready to be used */
	uint32_t retired; /* must not be reused yet: retired.c */
	uint32_t low;     /* the numbers of all thunks that the stack ever had */
	uint32_t high;    /* lie in [low, high] */
};

/* What the last walk has found. */
struct found {
	object *known;  /* the youngest object that was known */
	object *cut;    /* the object at which the walk was cut, if any */
	bool no_memory; /* whether lack of memory was the reason */
};

/* Counters that struct incstack_stats does not have. */
struct tally {
	uint64_t retrieved; /* samples */
	uint64_t thinned;   /* stats.planted when the barriers were last thinned */
	uint64_t all_new;   /* samples whose objects are all new; others are `shared` */
};

/* What mode validate keeps (validate.h). */
struct validation {
	int32_t hidden;             /* all ones, unless raw objects keep their rule in position */
	uint64_t rules_invalidated; /* the runtime's count, as last seen */
};

/* The requests of signal handlers, and what became of them: struct incstack_signal_stats. */
struct signal_requests {
	struct queue *queue; /* those that wait for a poll; may be null */
	uint64_t from_queue, biased, drains;
	_Atomic uint64_t requests, in_handler, merged; /* handlers count these */
	_Atomic uint64_t failed[INCSTACK_FAILURES];
};

/* How many rules a stack remembers by stack address: one for each 16 bytes. */
enum { RULES_AT = 1024 };

/* The fields that every sample reads come first and fill two cache lines. */
struct incstack_stack {
	uintptr_t busy;         /* the stack pointer of the operation in progress, or 0 */
	uintptr_t owner;        /* the thread that may use it */
	uintptr_t low, high;    /* where the words of its frames may be read */
	object *newest;         /* the youngest known caller; set_newest() sets both */
	uintptr_t newest_thunk; /* its thunk if it has a barrier, else a value no slot holds */
	runtime *runtime;
	trace **last;
	uint64_t samples, walked; /* counters: see struct incstack_stats */
	uint64_t observe_at;      /* the number of the next sample that distance.c observes */
	uint32_t slow_reasons;    /* why no sample may take the fast path; see below */
	uint32_t limbo;           /* thunks that an unwinder may still read */
	uint32_t walk_target;     /* frames that a sample should walk over (distance.c) */
	uint32_t walk_limit;      /* callers that it may walk over before it plants a barrier */
	struct arena arena;       /* its first three words end the two lines */
	const struct incstack__stack_kind *kind;
	uint32_t mode;
	struct own_thunks thunks;
	struct validation validation;
	struct distance distance;
	struct incstack_stats stats; /* except samples and walked, which are above */
	uint64_t broken;             /* see hooks.h */
	struct tally tally;
	struct found found;
	struct bounds given;  /* by the creator of the stack */
	struct mapped mapped; /* in this walk; where no bounds are given, the same as [low, high) */
	uintptr_t thread;     /* the thread that began on it, or 0: see shared.h */
	const struct incstack_stack_walker *walker; /* of a stack that only the embedder can walk */
	void *identity;                             /* the embedder's name of this stack */
	struct signal_requests signals;
	struct remembered *remembered; /* null: none are remembered; see remembered.h */
	uint32_t rule_at[RULES_AT];    /* plain rules only; see predicted_rule() */
};
_Static_assert(offsetof(struct incstack_stack, arena) == 104, "two lines, with three words of it");
_Static_assert(offsetof(struct incstack_stack, busy) == INCSTACK__STACK_BUSY, "see layout.h");

enum {
	SLOW_WALK = 1,         /* the kind of the stack, or mode validate, needs another walk */
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
static inline bool bounds_known(const stack *s)
{
	return s->given.high != 0;
}
/* A sample is lost because nobody can tell what was interrupted. */
static inline int lose_sample(stack *s)
{
	s->stats.lost_unwind++;
	return INCSTACK_EUNWIND;
}
static inline void set_newest(stack *s, object *o)
{
	s->newest = o;
	s->newest_thunk = barrier_word(o);
}

void incstack__cut(stack *s, object *o);
void incstack__cut_walk(stack *s, object *o, bool no_memory);

#endif
