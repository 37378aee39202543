/* SPDX-License-Identifier: MIT
 *
 * The curve of a heap profile: how much memory was live over time, and what each context allocated and freed in
 * each moment. A moment is a stretch of time; all have the same length.
 */
#ifndef INCSTACK_PROFILE_CURVE_H
#define INCSTACK_PROFILE_CURVE_H

#include <stdint.h>

#include <incstack/profile.h>

/* What a context allocated and freed in a moment. */
struct incstack__profile_piece {
	uint64_t allocated, freed; /* bytes */
	uint32_t node, moment;
};

struct incstack__profile_curve {
	uint64_t width_ns;       /* of a moment */
	uint64_t peak;           /* the most bytes that were live */
	uint64_t peak_ns;        /* when they were, in ns since the first moment began */
	const uint64_t *highest; /* the most bytes that were live in each moment */
	size_t moments;
	const struct incstack__profile_piece
		*pieces; /* in any order; null: only the sums are known */
	size_t piece_count;
};

/* Copies a curve into the profile, in place of an earlier one. HTML files contain it. It is kept and dropped
 * where a timeline is (timeline.h).
 * Errors: EINVAL (a node or a moment does not exist), ENOMEM.
 * Thread: owner. Signal: no. Allocates: malloc. Blocks: never. */
int incstack__profile_set_curve(struct incstack_profile *profile,
				const struct incstack__profile_curve *curve);

/* ---- inside ------------------------------------------------------------------- */

/* Gives `into`, which has the node nodes[i] for node i of `from`, the curve of `from`, if that has one. */
int incstack__curve_copy(const struct incstack_profile *from, const uint32_t *nodes,
			 struct incstack_profile *into);

/* Gives the pieces of node i, whose place in the tree has changed, to node nodes[i]; INCSTACK_PROFILE_NONE: they
 * are removed. Call it where incstack__timeline_move is called. */
void incstack__curve_move(struct incstack_profile *profile, const uint32_t *nodes);

/* Removes the curve of a profile, if it has one. */
void incstack__curve_drop(struct incstack_profile *profile);

#endif
