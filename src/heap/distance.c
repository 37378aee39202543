/* SPDX-License-Identifier: MIT
 *
 * How far below the top a mark is set: see distance.h.
 */
#include "distance.h"

/* A mark was hit, or none was for a while: counts what that says for a larger or smaller distance. */
void incstack__heap_distance_change(stack *s)
{
	uint32_t d = s->distance;
	s->score += HIT_COST * (int32_t)(s->hits < HITS_MAX ? s->hits : HITS_MAX);
	s->score -= (int32_t)s->observed;
	s->hits = s->observed = 0;
	if (s->score > -PATIENCE && s->score < PATIENCE)
		return;
	d = s->score > 0 ? d + 1 + d / 4 : d - d / 8 - (d > 1);
	s->distance = d < INCSTACK_HEAP_DISTANCE_MAX ? d : INCSTACK_HEAP_DISTANCE_MAX;
	s->score = 0;
}
