/* SPDX-License-Identifier: MIT
 *
 * How far below the top a mark is set.
 *
 * Frames that are popped above the mark cost nothing when they return, but each sample walks over
 * those that are there. A mark costs about sixteen steps of a walk when it is hit (bench/heap_bench). The
 * distance is made larger if the hits of the last samples have cost more than the steps to the mark, and smaller
 * if they have cost less. If a program returns by any number of frames, half as many hits need twice the distance.
 * Then the sum of both costs is smallest where they are equal. If it always returns by a few frames, one
 * step more ends the hits. Then the distance may be smaller than the best one, at up to twice the cost.
 * After a quiet period a smaller distance is tried. If its marks are hit, the next try waits twice as long.
 *
 * A walk may go past the distance to an older mark, until the frames walked in vain have cost as much
 * as a new mark. Both together are then at most twice the optimum (Karlin et al. 1988,
 * "Competitive snoopy caching"). Frames that are walked in vain do not speak for a smaller distance.
 */
#ifndef INCSTACK__HEAP_DISTANCE_H
#define INCSTACK__HEAP_DISTANCE_H

#include "state.h"

enum { HIT_COST = 16, HITS_MAX = 4, PATIENCE = 40, CALM_MAX = 32, CREDIT = 64, DISTANCE_FIRST = 2 };

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
		/* A larger distance would have cost nothing here. */
		s->score += (int32_t)s->distance;
	}
	if (!LIKELY(s->stats.samples < s->review))
		incstack__heap_distance_change(s);
}

#endif
