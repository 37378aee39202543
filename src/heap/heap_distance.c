/* SPDX-License-Identifier: MIT
 *
 * How far below the top a mark is set: see heap_distance.h.
 */
#include "heap_distance.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Marks were hit too often. If this is because the last step was one down, it is taken back, and the next one must
 * wait longer. */
static void step_up(stack *s)
{
	const uint32_t d = s->distance;
	if (s->before)
		s->calm = (uint8_t)smaller(2 * s->calm, CALM_MAX);
	s->distance = s->before ? s->before : smaller(d + 1 + d / 4, INCSTACK_HEAP_DISTANCE_MAX);
	s->before = 0;
	s->quiet = 0;
}

/* Marks are hit rarely: a smaller distance is tried. Two steps down in a row show that it pays. */
static void step_down(stack *s)
{
	const uint32_t d = s->distance;
	if (++s->quiet < s->calm)
		return;
	if (s->before)
		s->calm = 1;
	s->before = d > 1 ? (uint8_t)d : 0;
	s->quiet = 0;
	s->distance = d - d / 8 - (d > 1);
}

/* A mark was hit, or none was for a while: counts what that says for a larger or smaller distance. A try that fails
 * ends soon. */
void incstack__heap_distance_change(stack *s)
{
	const uint64_t now = s->stats.samples;
	const int32_t distance = (int32_t)smaller(s->distance, INCSTACK_HEAP_DISTANCE_MAX);
	const int32_t down = PATIENCE * distance;
	const int32_t up = s->before ? PATIENCE * ((distance + 3) / 4) : down;
	s->score += HIT_COST * (int32_t)smaller(s->hits, HITS_MAX);
	s->score -= (int32_t)(now - s->reviewed) * distance;
	s->hits = 0;
	s->reviewed = now;
	s->review = now + PATIENCE;
	if (s->score > -down && s->score < up)
		return;
	if (s->adaptive && s->score > 0)
		step_up(s);
	else if (s->adaptive)
		step_down(s);
	s->score = 0;
}
