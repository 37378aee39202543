/* SPDX-License-Identifier: MIT
 *
 * Makes a profile smaller: merges small contexts into their callers, replaces them by one frame, or
 * removes all contexts.
 */
#include <stdlib.h>
#include <string.h>

#include "cct.h"

int incstack_profile_clear(struct incstack_profile *profile)
{
	if (!profile)
		return INCSTACK_EINVAL;
	incstack__timeline_drop(profile);
	incstack__table_clear(&profile->node_table);
	profile->nodes_used = 1;
	memset(profile->weights, 0, profile->kinds * sizeof(*profile->weights));
	memset(profile->total, 0, sizeof(profile->total));
	return 0;
}

/* Marks the nodes that weigh enough in any kind. A caller weighs at least as much as its callees,
 * so the marked nodes are a tree. */
static int mark_large(const struct incstack_profile *profile, uint64_t parts, bool *kept)
{
	uint64_t *totals = malloc(profile->nodes_used * sizeof(*totals));

	if (!totals)
		return INCSTACK_ENOMEM;
	for (uint32_t k = 0; k < profile->kinds; k++) {
		(void)incstack_profile_totals(profile, k, totals);
		for (size_t i = 0; i < profile->nodes_used; i++)
			if (totals[i] && totals[i] >= totals[0] / parts)
				kept[i] = true;
	}
	kept[INCSTACK_PROFILE_ROOT] = true;
	free(totals);
	return 0;
}

static void move_weights(struct incstack_profile *profile, size_t from, size_t to, bool new_node)
{
	uint64_t *target = profile->weights + to * profile->kinds;
	const uint64_t *source = profile->weights + from * profile->kinds;

	for (uint32_t k = 0; k < profile->kinds; k++)
		target[k] = source[k] + (new_node ? 0 : target[k]);
}

/* Moves the nodes that stay to the front. map[i] is the new number of node i, or of the caller
 * that it was merged into. */
static void compact(struct incstack_profile *profile, const bool *kept, uint32_t *map)
{
	size_t used = 1;

	map[INCSTACK_PROFILE_ROOT] = INCSTACK_PROFILE_ROOT;
	for (size_t i = 1; i < profile->nodes_used; i++) {
		uint32_t parent = map[profile->nodes[i].parent];

		map[i] = kept[i] ? (uint32_t)used : parent;
		move_weights(profile, i, map[i], kept[i]);
		if (kept[i])
			profile->nodes[used++] = (struct incstack__node){
				.parent = parent, .frame = profile->nodes[i].frame};
	}
	incstack__timeline_drop(profile);
	profile->meta.pruned += profile->nodes_used - used;
	profile->nodes_used = used;
}

int incstack_profile_prune(struct incstack_profile *profile, uint64_t parts)
{
	uint32_t *map;
	bool *kept;
	int error;

	if (!profile || !parts)
		return INCSTACK_EINVAL;
	map = malloc(profile->nodes_used * sizeof(*map));
	kept = calloc(profile->nodes_used, sizeof(*kept));
	error = map && kept ? mark_large(profile, parts, kept) : INCSTACK_ENOMEM;
	if (!error) {
		compact(profile, kept, map);
		incstack__node_table_renew(profile);
	}
	free(map);
	free(kept);
	return error;
}

/* ---- shrink ---- */

struct shrink {
	struct incstack_profile *profile;
	uint32_t frame; /* "[pruned]" */
	bool *kept;
	uint32_t *map;    /* the new number of a node, or of the one that replaces it */
	uint32_t *pruned; /* by new number: the child that replaces others; 0: none yet */
};

/* Marks what is kept, except frames that replace others: they are made anew. Returns how many nodes the
 * profile will have at most: each one that is kept may have such a child. */
static int mark(const struct shrink *shrink, uint64_t parts, size_t *nodes)
{
	const struct incstack_profile *profile = shrink->profile;
	int error;

	memset(shrink->kept, 0, profile->nodes_used * sizeof(*shrink->kept));
	error = mark_large(profile, parts, shrink->kept);
	*nodes = 0;
	for (size_t i = 0; i < profile->nodes_used && !error; i++) {
		if (i && profile->nodes[i].frame == shrink->frame)
			shrink->kept[i] = false;
		*nodes += 2u * shrink->kept[i];
	}
	return error;
}

/* A caller comes before its callees, so the first nodes are a tree, too. */
static void mark_first(const struct shrink *shrink, size_t nodes)
{
	for (size_t i = 0, kept = 0; i < shrink->profile->nodes_used; i++)
		if (shrink->kept[i])
			shrink->kept[i] = ++kept <= nodes / 2;
}

static int choose_kept(const struct shrink *shrink, size_t most)
{
	const struct incstack_profile *profile = shrink->profile;
	uint64_t parts = 1;
	size_t nodes;
	int error;

	for (uint32_t k = 0; k < profile->kinds; k++)
		if (profile->total[k] > parts)
			parts = profile->total[k];
	do {
		parts -= parts / 2;
		error = mark(shrink, parts, &nodes);
	} while (!error && nodes > most && parts > 1);
	if (!error && nodes > most)
		mark_first(shrink, most);
	return error;
}

/* Returns the new number of a node. *used is how many nodes were placed: no more than were read. */
static uint32_t replace(const struct shrink *shrink, size_t node, size_t *used, bool *new_node)
{
	struct incstack_profile *profile = shrink->profile;
	const struct incstack__node from = profile->nodes[node];
	const uint32_t parent = shrink->map[from.parent];
	const bool kept = shrink->kept[node];

	*new_node = kept || (shrink->kept[from.parent] && !shrink->pruned[parent]);
	if (!*new_node)
		return shrink->kept[from.parent] ? shrink->pruned[parent] : parent;
	if (!kept)
		shrink->pruned[parent] = (uint32_t)*used;
	profile->nodes[*used] = (struct incstack__node){.parent = parent,
							.frame = kept ? from.frame : shrink->frame};
	return (uint32_t)(*used)++;
}

static void replace_all(const struct shrink *shrink)
{
	struct incstack_profile *profile = shrink->profile;
	size_t used = 1;

	for (size_t i = 1; i < profile->nodes_used; i++) {
		bool new_node;

		shrink->map[i] = replace(shrink, i, &used, &new_node);
		move_weights(profile, i, shrink->map[i], new_node);
	}
	incstack__timeline_drop(profile);
	profile->nodes_used = used;
	incstack__node_table_renew(profile);
}

int incstack_profile_shrink(struct incstack_profile *profile, uint32_t nodes)
{
	static const char name[] = "[pruned]";
	struct shrink shrink = {.profile = profile};
	int error;

	if (!profile || nodes < 3)
		return INCSTACK_EINVAL;
	if (profile->nodes_used <= nodes)
		return 0;
	error = incstack__frame_named(profile, name, strlen(name), -1, 0, &shrink.frame);
	shrink.kept = malloc(profile->nodes_used * sizeof(*shrink.kept));
	shrink.map = calloc(profile->nodes_used, sizeof(*shrink.map));
	shrink.pruned = calloc(profile->nodes_used, sizeof(*shrink.pruned));
	if (!shrink.kept || !shrink.map || !shrink.pruned)
		error = INCSTACK_ENOMEM;
	if (!error)
		error = choose_kept(&shrink, nodes);
	if (!error)
		replace_all(&shrink);
	free(shrink.kept);
	free(shrink.map);
	free(shrink.pruned);
	return error;
}
