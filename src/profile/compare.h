/* SPDX-License-Identifier: MIT
 *
 * How alike the weights of the same edges are; shared by compare and stability.
 */
#ifndef INCSTACK_PROFILE_COMPARE_H
#define INCSTACK_PROFILE_COMPARE_H

#include "cct.h"

/* The weights of both sides, by edge. Those of b take that many words of wide.h each. */
struct incstack__pair {
	const uint64_t *a, *b;
	size_t edges, words;
	uint64_t blur; /* weights of b that do not lie further apart may be equal */
};

/* How many edges the measure has in the tree. The root is one that weighs nothing. */
size_t incstack__edge_count(const struct incstack_profile *tree,
			    enum incstack_profile_measure measure);

/* Makes the weights of the edges of those of the nodes, which come first. */
void incstack__edge_weights(const struct incstack_profile *tree,
			    enum incstack_profile_measure measure, uint64_t *weights);

void incstack__measure(const struct incstack__pair *pair, double threshold,
		       struct incstack_profile_difference *difference);

#endif
