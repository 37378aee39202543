/* SPDX-License-Identifier: MIT
 *
 * The live memory over time; see curve.h.
 */
#include "curve.h"

#include <stdlib.h>
#include <string.h>

enum { MOMENTS_LEAST = 16 };

static void give_up(struct incstack__curve *curve)
{
	free(curve->pieces);
	free(curve->newest);
	curve->pieces = NULL;
	curve->newest = NULL;
	curve->count = curve->room = 0;
	curve->newest_room = 0;
	curve->without_pieces = true;
}

/* Makes the pieces of a node in one moment one piece. They are in the order of their moments. */
static void join_pieces(struct incstack__curve *curve)
{
	size_t used = 0;

	if (curve->newest)
		memset(curve->newest, 0, curve->newest_room * sizeof(*curve->newest));
	for (size_t i = 0; i < curve->count; i++) {
		const struct incstack__curve_piece piece = curve->pieces[i];
		uint32_t *newest = &curve->newest[piece.node];

		if (*newest && curve->pieces[*newest - 1].moment == piece.moment / 2) {
			curve->pieces[*newest - 1].allocated += piece.allocated;
			curve->pieces[*newest - 1].freed += piece.freed;
			continue;
		}
		curve->pieces[used] = piece;
		curve->pieces[used].moment = piece.moment / 2;
		*newest = (uint32_t)++used;
	}
	curve->count = used;
}

/* Makes two moments one. */
static void halve(struct incstack__curve *curve)
{
	enum { HALF = INCSTACK__CURVE_MOMENTS / 2 };

	for (uint32_t i = 0; i < HALF; i++) {
		const uint64_t left = curve->highest[2 * i], right = curve->highest[2 * i + 1];

		curve->highest[i] = left > right ? left : right;
	}
	memset(curve->highest + HALF, 0, HALF * sizeof(*curve->highest));
	join_pieces(curve);
	curve->moment /= 2;
	curve->width = curve->width > UINT64_MAX / 2 ? UINT64_MAX : curve->width * 2;
}

static void set_end(struct incstack__curve *curve)
{
	const uint64_t moments = (uint64_t)curve->moment + 1;

	curve->end = curve->width > (UINT64_MAX - curve->start) / moments
			     ? UINT64_MAX
			     : curve->start + moments * curve->width;
}

void incstack__curve_advance(struct incstack__curve *curve, uint64_t stamp, uint64_t live)
{
	uint64_t to;

	if (curve->width && stamp < curve->end)
		return;
	if (!curve->width) {
		curve->start = stamp;
		curve->width = 1;
	}
	while ((to = (stamp - curve->start) / curve->width) >= INCSTACK__CURVE_MOMENTS)
		halve(curve);
	while (curve->moment < to)
		curve->highest[++curve->moment] = live;
	set_end(curve);
}

static bool make_room(struct incstack__curve *curve, uint32_t node)
{
	if (node >= curve->newest_room) {
		const uint32_t room = node < UINT32_MAX / 2 ? 2 * node + 64 : UINT32_MAX;
		uint32_t *newest = realloc(curve->newest, (size_t)room * sizeof(*newest));

		if (!newest)
			return false;
		memset(newest + curve->newest_room, 0,
		       (size_t)(room - curve->newest_room) * sizeof(*newest));
		curve->newest = newest;
		curve->newest_room = room;
	}
	if (curve->count == curve->room) {
		const size_t room = curve->room ? 2 * curve->room : 1024;
		struct incstack__curve_piece *pieces =
			realloc(curve->pieces, room * sizeof(*pieces));

		if (!pieces)
			return false;
		curve->pieces = pieces;
		curve->room = room;
	}
	return true;
}

/* Returns false where the pieces are too many even in few moments. */
static bool make_fewer(struct incstack__curve *curve)
{
	while (curve->count > INCSTACK__CURVE_PIECES_MAX / 2 && curve->moment >= MOMENTS_LEAST)
		halve(curve);
	set_end(curve);
	return curve->count < INCSTACK__CURVE_PIECES_MAX;
}

static void add_piece(struct incstack__curve *curve, uint32_t node, uint64_t allocated,
		      uint64_t freed)
{
	if ((curve->count >= INCSTACK__CURVE_PIECES_MAX && !make_fewer(curve)) ||
	    !make_room(curve, node)) {
		give_up(curve);
		return;
	}
	curve->pieces[curve->count++] =
		(struct incstack__curve_piece){allocated, freed, node, curve->moment};
	curve->newest[node] = (uint32_t)curve->count;
}

void incstack__curve_add(struct incstack__curve *curve, uint32_t node, uint64_t allocated,
			 uint64_t freed)
{
	uint32_t newest = node < curve->newest_room ? curve->newest[node] : 0;

	if (curve->without_pieces)
		return;
	if (!newest || curve->pieces[newest - 1].moment != curve->moment) {
		add_piece(curve, node, allocated, freed);
		return;
	}
	curve->pieces[newest - 1].allocated += allocated;
	curve->pieces[newest - 1].freed += freed;
}

void incstack__curve_free(struct incstack__curve *curve)
{
	free(curve->pieces);
	free(curve->newest);
	curve->pieces = NULL;
	curve->newest = NULL;
}
