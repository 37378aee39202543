/* SPDX-License-Identifier: MIT
 *
 * What an optimizer asks while the program runs: the partial calling context tree
 * and the hot-method counters of Whaley 2000 (sections 5 and 6.5). The memory of
 * contexts and counters is taken once, when they are made. Besides, a tree remembers at
 * which addresses it has visited frames: some 40 bytes for each, so its size is that of
 * the deepest stacks, whatever the number of samples. The hottest entries are known at
 * any moment.
 *
 * Each belongs to one thread at a time. No function may be called from a signal
 * handler. Conventions as in incstack.h; part of libincstack_profile.a.
 */
#ifndef INCSTACK_PCCT_H
#define INCSTACK_PCCT_H

#include <incstack/incstack.h>

INCSTACK_BEGIN_C

/* ---- partial calling context tree -------------------------------------------- */

struct incstack_pcct;

#define INCSTACK_PCCT_NONE UINT32_MAX

struct incstack_pcct_options {
	size_t size; /* sizeof(struct incstack_pcct_options) */
	/* Contexts that fit. When one more is needed, all are purged (section 5.3). */
	uint32_t contexts;
	/* Frames that a sample goes up ("limit depth", the figure's BUFSIZE); 0: all. When
	 * none of them was visited before, the caller of the last is made a root, and the
	 * sample hangs under it, away from its callers (section 5.4.1). Roots of equal
	 * methods are one, those of whole samples among them; figure 7 would make many. */
	uint32_t depth;
};

/* A context: a node of the tree together with the edge that leads to it. Different
 * call sites of one caller are different edges. */
struct incstack_pcct_context {
	uint32_t parent;    /* NONE: its caller is unknown, or it has none */
	int32_t call_site;  /* bci of the call in the caller; -1 without caller */
	uint64_t method;
	uint64_t time;      /* weight of the samples with this context on top */
	/* Figure 7's edge weight: weight of the samples that passed the edge to it. These are
	 * those to which its activation was new, and those for which it was the youngest
	 * that was not: so one activation that is on top in 100 samples has 100. */
	uint64_t calls;
	/* Weight of the samples to which its activation was new: each activation counts
	 * once, with the weight of the sample that met it first. */
	uint64_t activations;
};

struct incstack_pcct_stats {
	uint64_t samples;       /* since it was made */
	uint64_t purges;
	uint64_t purged_time;   /* time of all contexts that were purged */
	uint64_t unconnected;   /* samples that met no visited frame within depth */
	uint64_t dropped;       /* samples that need more contexts than fit, or weigh too much */
	uint32_t contexts;      /* now */
};

/* Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_pcct_create(const struct incstack_pcct_options *options,
				      struct incstack_pcct **pcct);

/* Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_pcct_destroy(struct incstack_pcct *pcct);

/* Adds the traces of one retrieve, each with its weight, as figure 7 does. Trees of one
 * stack are added in their order; those of several stacks may take turns. Which
 * activations earlier samples visited follows from incstack_trace.old and from the frames'
 * addresses, over all trees that were added. It is exact with barrier distance 0, which
 * who asks for it sets in the runtime's options, and where no frame is moved; else more
 * activations seem new. So a context with much time and few activations runs long, one
 * with many is called often. Methods must be decoded, or be the same number for every
 * position in the method, to be recognized. An inlined frame is as new as the frame that
 * it is inlined into.
 * Errors: EINVAL, ENOMEM (the rest is not added); ELIMIT, ERANGE (a sample was dropped,
 * the rest is added).
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_pcct_add_tree(struct incstack_pcct *pcct,
					const struct incstack_tree *tree);

/* Forgets all contexts; the counters go on.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_pcct_purge(struct incstack_pcct *pcct);

enum incstack_pcct_order {
	INCSTACK_PCCT_BY_TIME = 0, /* time-consuming first */
	INCSTACK_PCCT_BY_CALLS,    /* by figure 7's edge weights */
	INCSTACK_PCCT_BY_ACTIVATIONS, /* frequently called first */
};

/* The numbers of the hottest contexts, hottest first; returns how many, up to max
 * and without those that weigh nothing. Numbers hold until the next purge.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_pcct_hottest(const struct incstack_pcct *pcct,
				       enum incstack_pcct_order order, uint32_t *numbers, int max);

/* The number of the context with this parent (NONE: without caller), call site and
 * method; NONE if there is none.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint32_t incstack_pcct_find(const struct incstack_pcct *pcct, uint32_t parent,
					 int32_t call_site, uint64_t method);

/* Errors: EINVAL. Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_pcct_context(const struct incstack_pcct *pcct, uint32_t number,
				       struct incstack_pcct_context *context);

/* Errors: EINVAL. Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_pcct_stats(const struct incstack_pcct *pcct,
				     struct incstack_pcct_stats *stats);

/* ---- hot methods ------------------------------------------------------------------ */

struct incstack_hot;

struct incstack_hot_method {
	uint64_t method;
	uint64_t weight;
};

/* Makes counters for up to `methods` methods. Errors: EINVAL, ENOMEM.
 * Thread: any. Signal: no. Allocates: malloc. Blocks: never. */
INCSTACK_API int incstack_hot_create(uint32_t methods, struct incstack_hot **hot);

/* Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API void incstack_hot_destroy(struct incstack_hot *hot);

/* Counts a method. Errors: EINVAL, ELIMIT (no counter is free for a new method; the
 * weight is counted as lost), ERANGE.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_hot_add(struct incstack_hot *hot, uint64_t method, uint64_t weight);

/* Counts the top method of each trace. Errors: as add; after one the rest is counted.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_hot_add_tree(struct incstack_hot *hot, const struct incstack_tree *tree);

/* The hottest methods, hottest first; returns how many, up to max.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API int incstack_hot_hottest(const struct incstack_hot *hot,
				      struct incstack_hot_method *methods, int max);

/* The weight of what found no counter; 0 without hot.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
INCSTACK_API uint64_t incstack_hot_lost(const struct incstack_hot *hot);

INCSTACK_END_C

#endif
