/* SPDX-License-Identifier: MIT
 *
 * Merges several profiles into one. Frames are matched by their texts, because identifiers of
 * functions mean nothing outside of the process that made them.
 */
#include "merge.h"
#include "module.h"
#include "analysis.h"

#include <stdlib.h>
#include <string.h>

/* Finds or adds the frame of `into` for each frame of `from`. */
int incstack__map_frames(struct incstack_profile *into, const struct incstack_profile *from,
			 enum incstack__sites sites, uint32_t *map)
{
	for (uint32_t i = 0; i < from->frames_used; i++) {
		const struct incstack__frame *f = &from->frames[i];
		char buffer[INCSTACK__FRAME_TEXT];
		size_t length;
		const char *text = incstack__frame_text(from, i, buffer, &length);
		bool kept = sites == INCSTACK__SITES_KEPT;
		struct incstack__frame rest = {0};
		int error = kept ? incstack__code_copy(from, f, into, &rest) : 0;

		if (kept) {
			rest.line = f->line;
			rest.kind = f->kind;
			rest.flags = f->flags & INCSTACK_OBJECT_VIRTUAL;
		}
		if (!error)
			error = incstack__frame_at(
				into, text, length,
				kept && f->file ? incstack__text(from, f->file - 1) : NULL, &rest,
				&map[i]);
		if (error)
			return error;
	}
	return 0;
}

/* Finds or adds the nodes. The number of a parent is smaller than its child's, so one pass is
 * enough. */
int incstack__map_nodes(struct incstack_profile *into, const struct incstack_profile *from,
			const uint32_t *frames, uint32_t *map)
{
	map[INCSTACK_PROFILE_ROOT] = INCSTACK_PROFILE_ROOT;
	for (uint32_t i = 1; i < from->nodes_used; i++) {
		const struct incstack__node *n = &from->nodes[i];
		int error = incstack__node_child(into, map[n->parent], frames[n->frame], &map[i]);

		if (error)
			return error;
	}
	return 0;
}

int incstack__map(struct incstack_profile *into, const struct incstack_profile *from,
		  enum incstack__sites sites, uint32_t **nodes)
{
	uint32_t *frames = malloc((from->frames_used + 1) * sizeof(*frames));
	int error = 0;

	*nodes = malloc(from->nodes_used * sizeof(**nodes));
	if (!frames || !*nodes)
		error = INCSTACK_ENOMEM;
	if (!error)
		error = incstack__map_frames(into, from, sites, frames);
	if (!error)
		error = incstack__map_nodes(into, from, frames, *nodes);
	free(frames);
	if (error) {
		free(*nodes);
		*nodes = NULL;
	}
	return error;
}

static bool names_equal(const struct incstack_profile *a, uint32_t x,
			const struct incstack_profile *b, uint32_t y)
{
	const struct incstack__name *p = &a->names[x], *q = &b->names[y];

	return p->length == q->length &&
	       !memcmp(a->texts + p->offset, b->texts + q->offset, p->length);
}

static bool kinds_equal(const struct incstack_profile *a, const struct incstack_profile *b)
{
	if (a->kinds != b->kinds)
		return false;
	for (uint32_t k = 0; k < a->kinds; k++)
		if (!names_equal(a, a->kind_name[k], b, b->kind_name[k]) ||
		    !names_equal(a, a->kind_unit[k], b, b->kind_unit[k]))
			return false;
	return true;
}

static uint64_t scaled(uint64_t weight, uint64_t numerator, uint64_t denominator)
{
	unsigned __int128 product = (unsigned __int128)weight * numerator;

	return denominator ? (uint64_t)((product + denominator / 2) / denominator) : 0;
}

/* Adds the weights of `from`. Each kind is scaled so that its sum is `target`. */
static int add_scaled(struct incstack_profile *into, const struct incstack_profile *from,
		      const uint64_t *target)
{
	uint32_t *map;
	int error = incstack__map(into, from, INCSTACK__SITES_KEPT, &map);

	for (uint32_t i = 0; i < from->nodes_used && !error; i++)
		for (uint32_t k = 0; k < from->kinds && !error; k++)
			error = incstack__node_weigh(into, map[i], k,
						     scaled(incstack__profile_self(from, i, k),
							    target[k], from->total[k]));
	free(map);
	return error;
}

int incstack_profile_merge(struct incstack_profile *into, const struct incstack_profile *from)
{
	if (!into || !from || into == from || !kinds_equal(into, from))
		return INCSTACK_EINVAL;
	for (uint32_t k = 0; k < from->kinds; k++)
		if (from->total[k] > (uint64_t)INT64_MAX - into->total[k])
			return INCSTACK_ERANGE;
	return add_scaled(into, from, from->total);
}

int incstack__create_like(const struct incstack_profile *like, struct incstack_profile **made)
{
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];

	for (uint32_t k = 0; k < like->kinds; k++)
		(void)incstack_profile_kind(like, k, &kinds[k]);
	return incstack_profile_create(kinds, like->kinds, made);
}

int incstack__profile_select(const struct incstack_profile *profile, uint32_t kind,
			     const struct incstack_profile_kind *as, struct incstack_profile **one)
{
	struct incstack_profile_kind own;
	struct incstack_profile *made = NULL;
	uint32_t *map = NULL;
	int error;

	if (!one || incstack_profile_kind(profile, kind, &own))
		return INCSTACK_EINVAL;
	error = incstack_profile_create(as ? as : &own, 1, &made);
	if (!error)
		error = incstack__map(made, profile, INCSTACK__SITES_KEPT, &map);
	for (uint32_t i = 0; i < profile->nodes_used && !error; i++)
		error = incstack__node_weigh(made, map[i], 0,
					     incstack__profile_self(profile, i, kind));
	free(map);
	if (error)
		incstack_profile_destroy(made);
	else
		*one = made;
	return error;
}

bool incstack__kinds_alike(const struct incstack_profile *const *profiles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!profiles[i] || !kinds_equal(profiles[0], profiles[i]))
			return false;
	return true;
}

/* All integers up to this one are exact as a double, which is what JSON formats hold. */
#define EXACT_MAX (UINT64_C(1) << 53)

uint64_t incstack__greatest_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Returns the sum to which each profile's weights are scaled: the least common multiple of the
 * totals, which keeps every weight exact. If that is too large, it is a multiple of the largest
 * total, large enough that rounding does not matter. */
static uint64_t common_total(const struct incstack_profile *const *profiles, size_t count,
			     uint32_t kind)
{
	uint64_t common = 1, largest = 0, most = EXACT_MAX / count;
	uint64_t fits = (uint64_t)INT64_MAX / 2 / count; /* half: rounding adds a little */
	bool exact = true;

	for (size_t i = 0; i < count; i++) {
		uint64_t total = profiles[i]->total[kind];

		if (!total)
			continue;
		uint64_t factor = total / incstack__greatest_divisor(common, total);

		largest = total > largest ? total : largest;
		exact = exact && factor <= most / common;
		common = exact ? common * factor : 1;
	}
	if (!largest || exact)
		return largest ? common : 0;
	if (largest < most)
		return most / largest * largest;
	return largest < fits ? largest : fits;
}

int incstack__profile_average(const struct incstack_profile *const *profiles, size_t count,
			      struct incstack_profile **average)
{
	uint64_t target[INCSTACK_PROFILE_KINDS_MAX];
	struct incstack_profile *made = NULL;
	int error;

	if (!profiles || !count || !average || !incstack__kinds_alike(profiles, count))
		return INCSTACK_EINVAL;
	for (uint32_t k = 0; k < profiles[0]->kinds; k++)
		target[k] = common_total(profiles, count, k);
	error = incstack__create_like(profiles[0], &made);
	for (size_t i = 0; i < count && !error; i++)
		error = add_scaled(made, profiles[i], target);
	if (error) {
		incstack_profile_destroy(made);
		return error;
	}
	*average = made;
	return 0;
}
