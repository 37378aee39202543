/* SPDX-License-Identifier: MIT
 *
 * Profiles for an optimizer that queries them while the program runs: the partial
 * calling context tree (PCCT) of Whaley 2000 (section 5). The memory for contexts is
 * allocated once, at creation. A tree also remembers the addresses of the frames that it
 * has visited, in about 40 bytes each. So its size depends on the deepest stacks, not on
 * the number of samples. The hottest contexts can be queried at any time.
 *
 * A tree belongs to one thread at a time, its owner. No function may be called from a
 * signal handler. Conventions as in incstack.h. Part of libincstack_profile.a.
 */
#ifndef INCSTACK_PCCT_H
#define INCSTACK_PCCT_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* A partial calling context tree. */
struct incstack_pcct;

/* The number that stands for no context. */
#define INCSTACK_PCCT_NONE UINT32_MAX

/* The options of a tree. */
struct incstack_pcct_options {
	size_t size; /* sizeof(struct incstack_pcct_options) */
	/* Capacity in contexts. When one more is needed, all are purged (section 5.3). */
	uint32_t contexts;
	/* How many frames of a sample are examined ("limit depth", BUFSIZE in the paper's
	 * figure 7); 0: all. If none of them was visited before, the caller of the last one
	 * becomes a root, and the sample is added below it, without its callers (section
	 * 5.4.1). Roots with the same function, including those of whole samples, are merged;
	 * figure 7 would keep them apart. */
	uint32_t depth;
};

/* A context: a node of the tree with the edge that leads to it. Different call sites in
 * one caller are different edges. */
struct incstack_pcct_context {
	size_t size;       /* sizeof(struct incstack_pcct_context), set by the caller */
	uint32_t number;   /* from 0 to incstack_pcct_stats.contexts - 1 */
	uint32_t parent;   /* its number; NONE: the caller is unknown or does not exist */
	int32_t call_site; /* position of the call in the caller; -1 without a caller */
	uint64_t function; /* as in the frame objects */
	uint64_t time;     /* weight of the samples with this context on top */
	/* The edge weight of figure 7: the weight of the samples for which the activation of
	 * this context was new, or was the youngest one that was not new. So one activation
	 * that is the top frame of 100 samples counts 100. */
	uint64_t calls;
	/* Weight of the samples for which the activation was new. Each activation counts
	 * once, with the weight of the first sample that saw it. */
	uint64_t activations;
};

/* Counters of one tree. */
struct incstack_pcct_stats {
	size_t size;          /* sizeof(struct incstack_pcct_stats), set by the caller */
	uint64_t samples;     /* samples since creation */
	uint64_t purges;      /* how often all contexts were purged */
	uint64_t purged_time; /* total time of the purged contexts */
	uint64_t unconnected; /* samples without a visited frame within depth */
	uint64_t dropped;     /* samples that found no room or no memory, or weigh too much */
	uint32_t contexts;    /* contexts in the tree now */
};

/* Creates an empty tree. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_pcct_create(const struct incstack_pcct_options *options,
				      struct incstack_pcct **pcct);

/* Frees the tree; null is allowed.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_pcct_destroy(struct incstack_pcct *pcct);

/* Adds the traces of one retrieve, each with its weight, as in figure 7. Add the trees of
 * one stack in their order. Trees of several stacks may alternate. incstack_trace.old and
 * the addresses of the frames show which activations were visited by earlier samples, in all
 * trees added so far. This is exact if the barrier distance in the runtime's options is 1
 * and no frame is moved. Otherwise the frames that are captured late have no mark, and old activations
 * are taken for new ones, the more the larger the distance: in one program 2.9 times as many at
 * distance 5, and 39 times as many at the largest. Use `activations` and `calls` with distance 1 only. `time` is
 * exact at any distance. A context
 * with much time and few activations runs long; one with many activations is called often.
 * A function is recognized only if it is decoded, or is the same number at every position in
 * the function. An inlined frame is new if the frame that it is inlined into is new.
 * Errors: EINVAL; ENOMEM: the rest was dropped; ELIMIT, ERANGE: a sample was dropped, the
 * rest was added.
 * Algorithm: Whaley 2000, section 5 and figure 7.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_pcct_add_tree(struct incstack_pcct *pcct,
					const struct incstack_tree *tree);

/* The orders of the contexts. By a weight, the heaviest context is first, and a context of weight 0
 * has no place. */
enum incstack_pcct_order {
	INCSTACK_PCCT_BY_NUMBER = 0,  /* parents before their callees */
	INCSTACK_PCCT_BY_TIME,        /* time-consuming first */
	INCSTACK_PCCT_BY_CALLS,       /* by the edge weights of figure 7 */
	INCSTACK_PCCT_BY_ACTIVATIONS, /* frequently called first */
};

/* Copies the context at a place of an order, from 0, to *context. So BY_NUMBER and the `parent` of
 * a context give its caller, and BY_TIME and the places from 0 to 9 give the ten hottest contexts.
 * Numbers are valid until the next purge; a place, until the next add_tree.
 * Errors: EINVAL, also for a place beyond the last context, which ends a loop over an order.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_pcct_context(const struct incstack_pcct *pcct,
				       enum incstack_pcct_order order, uint32_t place,
				       struct incstack_pcct_context *context);

/* Copies the counters to *stats. Errors: EINVAL.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_pcct_stats(const struct incstack_pcct *pcct,
				     struct incstack_pcct_stats *stats);

INCSTACK_END_C

#endif
