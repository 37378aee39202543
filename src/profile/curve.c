/* SPDX-License-Identifier: MIT
 *
 * Keeps the curve of a profile; see curve.h.
 */
#include "curve.h"

#include <stdlib.h>
#include <string.h>

#include "cct.h"

static void release(const struct incstack__profile_curve *curve)
{
	if (!curve)
		return;
	free((void *)(uintptr_t)curve->highest);
	free((void *)(uintptr_t)curve->pieces);
	free((void *)(uintptr_t)curve);
}

void incstack__curve_drop(struct incstack_profile *profile)
{
	release(profile->curve);
	profile->curve = NULL;
}

static bool is_valid(const struct incstack_profile *profile,
		     const struct incstack__profile_curve *curve)
{
	if (!curve->width_ns || !curve->moments || !curve->highest)
		return false;
	for (size_t i = 0; curve->pieces && i < curve->piece_count; i++)
		if (curve->pieces[i].node >= profile->nodes_used ||
		    curve->pieces[i].moment >= curve->moments)
			return false;
	return true;
}

/* Returns a copy of an array, which may be empty. */
static void *copy_of(const void *array, size_t count, size_t size)
{
	void *copy = calloc(count + 1, size);

	if (copy && count)
		memcpy(copy, array, count * size);
	return copy;
}

int incstack__profile_set_curve(struct incstack_profile *profile,
				const struct incstack__profile_curve *curve)
{
	struct incstack__profile_curve *made;

	if (!profile || !curve || !is_valid(profile, curve))
		return INCSTACK_EINVAL;
	made = calloc(1, sizeof(*made));
	if (!made)
		return INCSTACK_ENOMEM;
	*made = *curve;
	made->highest = copy_of(curve->highest, curve->moments, sizeof(*curve->highest));
	if (curve->pieces)
		made->pieces = copy_of(curve->pieces, curve->piece_count, sizeof(*curve->pieces));
	if (!made->highest || (curve->pieces && !made->pieces)) {
		release(made);
		return INCSTACK_ENOMEM;
	}
	incstack__curve_drop(profile);
	profile->curve = made;
	return 0;
}

int incstack__curve_copy(const struct incstack_profile *from, const uint32_t *nodes,
			 struct incstack_profile *into)
{
	struct incstack__profile_curve curve;
	struct incstack__profile_piece *pieces = NULL;
	int error;

	if (!from->curve)
		return 0;
	curve = *from->curve;
	if (curve.pieces) {
		pieces = copy_of(curve.pieces, curve.piece_count, sizeof(*pieces));
		if (!pieces)
			return INCSTACK_ENOMEM;
		for (size_t i = 0; i < curve.piece_count; i++)
			pieces[i].node = nodes[pieces[i].node];
		curve.pieces = pieces;
	}
	error = incstack__profile_set_curve(into, &curve);
	free(pieces);
	return error;
}

void incstack__curve_move(struct incstack_profile *profile, const uint32_t *nodes)
{
	struct incstack__profile_curve *curve = profile->curve;
	struct incstack__profile_piece *pieces;
	size_t kept = 0;

	if (!curve || !curve->pieces)
		return;
	pieces = (void *)(uintptr_t)curve->pieces; /* the profile's own copy */
	for (size_t i = 0; i < curve->piece_count; i++) {
		struct incstack__profile_piece piece = pieces[i];

		piece.node = nodes[piece.node];
		if (piece.node != INCSTACK_PROFILE_NONE)
			pieces[kept++] = piece;
	}
	curve->piece_count = kept;
}
