/* SPDX-License-Identifier: MIT
 *
 * A small interpreter whose frames lie on the heap, for tests of incstack/heap.h. It runs random programs:
 * calls, tail calls, returns, errors, coroutines, frames that a collector moves, samples. A new frame takes
 * the memory of the frame that was popped last. Every trace is compared, frame by frame, with a walk by
 * hand at the time of its sample. It needs no test framework and no thread.
 */
#ifndef TOY_H
#define TOY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <incstack/heap.h>

#define REQUIRE(condition) ((condition) ? (void)0 : toy_fail(__FILE__, __LINE__, #condition))

struct node {
	struct node *caller;
	uint64_t function;
	uint32_t position;
	uint32_t seen; /* a bit for each position at which a trace has shown it */
	uint16_t kind;
	bool marked, gone;
};

/* A frame as it was at a sample. */
struct seen {
	struct incstack_heap_frame frame;
	bool before; /* an earlier trace has shown it at the same position */
};

/* What a stack held at a sample. */
struct snapshot {
	uint32_t count;
	struct seen *frames;
};

enum { SNAPSHOTS = 16, COROUTINES = 4, KEPT = 4 };

/* A tree that is released later. */
struct kept {
	const struct incstack_heap_tree *tree;
	struct coroutine *coroutine; /* null if it has ended */
	uint64_t sum;                /* of what the tree must still show then */
};

struct coroutine {
	struct incstack_heap_stack *stack;
	struct node *top;
	uint32_t depth;
	struct snapshot snapshots[SNAPSHOTS];
	uint32_t samples; /* not yet retrieved */
};

/* How the toy tells of frames that an error pops. */
enum reports {
	REPORT_EACH,   /* it looks for marks in all frames */
	REPORT_MARKED, /* incstack_heap_stack_marked */
	REPORT_ONCE,   /* incstack_heap_stack_unwinding_to */
	REPORT_NOTHING,
};

/* What the embedder's functions answer wrongly, one time in `lying`. */
enum lies {
	LIE_UNKNOWN = 1,  /* a caller is unknown */
	LIE_UNMARKED = 2, /* a frame has no mark, although it has one */
	LIE_REFUSED = 4,  /* a frame cannot have a mark */
	LIE_CIRCLE = 8,   /* a caller is a younger frame */
};

struct toy_options {
	uint32_t mode, distance;
	enum reports reports;
	uint32_t depth_max; /* 0: 200 */
	unsigned lies;      /* enum lies */
	uint32_t lying;     /* one time in so many; 0: never */
	bool still;         /* no frame is moved */
	long fail_after; /* this allocation and those that follow fail, until something succeeds that
			     * must not fail; 0: none fails */
	uint64_t seed;
	const uint8_t *bytes; /* not null: they decide instead of the seed, until the last one */
	size_t size;
};

struct toy {
	struct toy_options options;
	struct incstack_heap *heap;
	struct coroutine coroutines[COROUTINES];
	struct coroutine *now;
	struct kept kept[KEPT];
	struct node *free_nodes;
	long fail_after; /* negative: no allocation fails */
	size_t allocated;
	uint64_t random;
	uint64_t traces, compared, missing, errors, marks, lied, forgotten;
	struct incstack_heap_stats dead; /* the sums of the stacks that were destroyed */
};

extern struct toy toy;

_Noreturn void toy_fail(const char *file, int line, const char *condition);
uint32_t toy_below(uint32_t n);

/* toy.c: the interpreter, whose running coroutine is toy.now. */
void toy_open(const struct toy_options *options);
void toy_close(void);
void toy_run(uint64_t steps);
void toy_call(void);
void toy_return(void);
void toy_raise(uint32_t frames);
struct incstack_heap_stats toy_stats(void);
int toy_expect(int error);

/* oracle.c: samples, and what they must show. */
void toy_describe(const struct node *n, struct incstack_heap_frame *f);
void toy_sample(void);
void toy_trace(void);
int toy_retrieve(void);
void toy_drop_samples(struct coroutine *c);
void toy_drop_trees(void);

#endif
