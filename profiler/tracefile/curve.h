/* SPDX-License-Identifier: MIT
 *
 * The live memory of a program over time, and what each context allocated and freed in each moment. A moment is a
 * stretch of time. When there are too many, two become one, so that their number does not depend on how long the
 * program ran.
 */
#ifndef INCSTACK_TRACEFILE_CURVE_H
#define INCSTACK_TRACEFILE_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INCSTACK__CURVE_MOMENTS 400u
/* With more pieces, moments are joined; if few would be left, the pieces are given up. */
#define INCSTACK__CURVE_PIECES_MAX (1u << 20)

/* What a context allocated and freed in a moment. */
struct incstack__curve_piece {
	uint64_t allocated, freed;
	uint32_t node, moment;
};

struct incstack__curve {
	uint64_t start; /* the stamp of the first event */
	uint64_t width; /* of a moment; 0: there was no event */
	uint64_t end;   /* the stamp at which the next moment begins */
	uint32_t moment;
	uint64_t highest[INCSTACK__CURVE_MOMENTS]; /* the most bytes live in each moment */

	struct incstack__curve_piece *pieces; /* by moment */
	size_t count, room;
	bool without_pieces; /* they were too many, or there was no memory */
	uint32_t *newest;    /* the newest piece of each node, plus 1 */
	uint32_t newest_room;
};

/* Notes that an event happens at this stamp, before which so many bytes were live. */
void incstack__curve_advance(struct incstack__curve *curve, uint64_t stamp, uint64_t live);
/* Adds to the context in the moment of the event. */
void incstack__curve_add(struct incstack__curve *curve, uint32_t node, uint64_t allocated,
			 uint64_t freed);
/* Notes how many bytes are live after the event. */
static inline void incstack__curve_note(struct incstack__curve *curve, uint64_t live)
{
	if (live > curve->highest[curve->moment])
		curve->highest[curve->moment] = live;
}
void incstack__curve_free(struct incstack__curve *curve);

#endif
