/* SPDX-License-Identifier: MIT
 *
 * How far below the top a mark is set.
 *
 * Frames that are popped above the mark cost nothing when they return, but each sample walks over
 * those that are there. The distance follows the gradient of the cost: a mark costs about sixteen steps
 * of a walk when it is hit (bench/heap_bench), so it should be hit before one sample in sixteen. After a
 * quiet period a smaller distance is tried. If its marks are hit, the next try waits twice as long.
 *
 * A walk may go past the distance to an older mark, until the frames walked in vain have cost as much
 * as a new mark. Both together are then at most twice the optimum (Karlin et al. 1988,
 * "Competitive snoopy caching"). Frames that are walked in vain do not speak for a smaller distance.
 */
#ifndef INCSTACK__HEAP_DISTANCE_H
#define INCSTACK__HEAP_DISTANCE_H

#include "state.h"

enum { HIT_COST = 16, HITS_MAX = 4, PATIENCE = 40, CALM_MAX = 16, CREDIT = 64, DISTANCE_FIRST = 2 };

void incstack__heap_distance_change(stack *s);

/* How many frames a sample may walk over before it sets a mark. */
static inline uint32_t walk_limit(const stack *s)
{
	return s->count ? s->distance + s->credit : s->distance;
}

/* A sample has walked over so many frames, the top included, before it came to a mark. */
static inline void distance_observe(stack *s, uint32_t frames)
{
	if (frames > s->distance) {
		const uint32_t rent = frames - s->distance;
		s->credit -= rent < s->credit ? rent : s->credit;
		s->score++; /* a larger distance would have cost nothing here */
	}
	if (!LIKELY(s->stats.samples < s->review))
		incstack__heap_distance_change(s);
}

#endif
