/* SPDX-License-Identifier: MIT
 *
 * Compares the weights of the same edges. Shared by compare.c and stability.c.
 */
#ifndef INCSTACK_PROFILE_COMPARE_H
#define INCSTACK_PROFILE_COMPARE_H

#include "cct.h"
#include "analysis.h"

/* The weights of both sides, by edge. Each weight of b takes `words` words of wide.h. */
struct incstack__pair {
	const uint64_t *a, *b;
	size_t edges, words;
	uint64_t blur; /* weights of b that differ by no more than this may be equal */
};

/* Returns how many edges the measure has in the tree. The root counts as an edge without weight. */
size_t incstack__edge_count(const struct incstack_profile *tree,
			    enum incstack__profile_measure measure);

/* Computes the weights of the edges in place. At the call, `weights` begins with the weights of the
 * nodes. */
void incstack__edge_weights(const struct incstack_profile *tree,
			    enum incstack__profile_measure measure, uint64_t *weights);

void incstack__measure(const struct incstack__pair *pair, double threshold,
		       struct incstack__profile_difference *difference);

#endif
