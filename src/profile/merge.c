/* SPDX-License-Identifier: MIT
 *
 * Several profiles in one: frames are matched by their texts, because method
 * identifiers mean nothing outside the process that made them.
 */
#include "merge.h"

#include <stdlib.h>
#include <string.h>

/* The frame of `into` for each frame of `from`. */
static int map_frames(struct incstack_profile *into, const struct incstack_profile *from,
		      enum incstack__sites sites, uint32_t *map)
{
	for (uint32_t i = 0; i < from->frames_used; i++) {
		const struct incstack__frame *f = &from->frames[i];
		char buffer[INCSTACK__FRAME_TEXT];
		size_t length;
		const char *text = incstack__frame_text(from, i, buffer, &length);
		bool kept = sites == INCSTACK__SITES_KEPT;
		int error = incstack__frame_named(into, text, length, kept ? f->bci : -1,
						  kept ? f->flags & INCSTACK_OBJECT_VIRTUAL : 0,
						  &map[i]);

		if (error)
			return error;
	}
	return 0;
}

/* A parent's number is smaller than its child's, so one pass is enough. */
static int map_nodes(struct incstack_profile *into, const struct incstack_profile *from,
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
		error = map_frames(into, from, sites, frames);
	if (!error)
		error = map_nodes(into, from, frames, *nodes);
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

/* Adds the weights of `from`, each kind scaled so that it would sum to target. */
static int add_scaled(struct incstack_profile *into, const struct incstack_profile *from,
		      const uint64_t *target)
{
	uint32_t *map;
	int error = incstack__map(into, from, INCSTACK__SITES_KEPT, &map);

	for (uint32_t i = 0; i < from->nodes_used && !error; i++)
		for (uint32_t k = 0; k < from->kinds && !error; k++)
			error = incstack__node_weigh(into, map[i], k,
						     scaled(incstack_profile_self(from, i, k),
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

/* An empty profile with the kinds of another. */
static int create_like(const struct incstack_profile *like, struct incstack_profile **made)
{
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];

	for (uint32_t k = 0; k < like->kinds; k++)
		(void)incstack_profile_kind(like, k, &kinds[k]);
	return incstack_profile_create(kinds, like->kinds, made);
}

static bool all_alike(const struct incstack_profile *const *profiles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!profiles[i] || !kinds_equal(profiles[0], profiles[i]))
			return false;
	return true;
}

static void largest_totals(const struct incstack_profile *const *profiles, size_t count,
			   uint64_t *largest)
{
	for (size_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < profiles[i]->kinds; k++)
			if (profiles[i]->total[k] > largest[k])
				largest[k] = profiles[i]->total[k];
}

int incstack_profile_average(const struct incstack_profile *const *profiles, size_t count,
			     struct incstack_profile **average)
{
	uint64_t largest[INCSTACK_PROFILE_KINDS_MAX] = {0};
	struct incstack_profile *made = NULL;
	int error;

	if (!profiles || !count || !average || !all_alike(profiles, count))
		return INCSTACK_EINVAL;
	largest_totals(profiles, count, largest);
	error = create_like(profiles[0], &made);
	for (size_t i = 0; i < count && !error; i++)
		error = add_scaled(made, profiles[i], largest);
	if (error) {
		incstack_profile_destroy(made);
		return error;
	}
	*average = made;
	return 0;
}
