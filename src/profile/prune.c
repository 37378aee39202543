/* SPDX-License-Identifier: MIT
 *
 * Makes a profile smaller: merges small contexts into their callers, or removes all contexts.
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
