/* SPDX-License-Identifier: MIT
 *
 * How the weights of contexts are shared by the threads of a timeline. In a pprof file, a sample has its thread
 * as labels.
 */
#ifndef INCSTACK_PROFILE_PPROF_THREADS_H
#define INCSTACK_PROFILE_PPROF_THREADS_H

#include "profile/cct.h"

/* What a context has of a thread. */
struct incstack__pprof_share {
	uint32_t node, thread, kind; /* the kind of weight that says what the thread did; 0: none */
	uint64_t weight, count;      /* the number of samples */
};

struct incstack__pprof_threads {
	struct incstack__pprof_share *shares; /* by node, then by thread */
	size_t used;
	size_t next;      /* to be given out */
	uint64_t keys[2]; /* strings "thread" and "tid"; 0: not written yet */
};

/* Computes the shares. Without a timeline there are none. */
int incstack__pprof_threads_make(struct incstack__pprof_threads *threads,
				 const struct incstack_profile *profile);
void incstack__pprof_threads_free(struct incstack__pprof_threads *threads);

/* Adds a share to the weights of a sample, which are INCSTACK_PROFILE_KINDS_MAX numbers: to kind 0, to kind 1,
 * which counts samples, and to its own kind. */
void incstack__pprof_share_add(const struct incstack__pprof_share *share, uint64_t *values);

/* Gives out the shares of a node, in *first and the next ones. Nodes must come in ascending order. Returns their
 * number, or 0 if they do not add up to the weights of the node. */
size_t incstack__pprof_threads_of(struct incstack__pprof_threads *threads,
				  const struct incstack_profile *profile, uint32_t node,
				  const struct incstack__pprof_share **first);

#endif
