/* SPDX-License-Identifier: MIT
 *
 * Makes a profile smaller: merges the small contexts below each caller into one, or removes all contexts.
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

/* Where the nodes go. */
struct move {
	bool *kept;
	uint32_t *map;  /* the new number of each node, or of the one that stands for it */
	uint32_t *rest; /* of each new node: the child that stands for those that go; 0: none */
	uint32_t frame; /* of these children */
};

static uint32_t put_node(struct incstack_profile *profile, size_t *used, uint32_t parent,
			 uint32_t frame)
{
	profile->nodes[*used] = (struct incstack__node){.parent = parent, .frame = frame};
	return (uint32_t)(*used)++;
}

/* Returns the new number of node i. A node that stands for others has no children: what was below them is
 * in it, too. */
static uint32_t place_node(struct incstack_profile *profile, struct move *move, size_t i,
			   size_t *used)
{
	const struct incstack__node node = profile->nodes[i];
	uint32_t parent = move->map[node.parent], *rest = &move->rest[parent];

	if (move->kept[i])
		return put_node(profile, used, parent, node.frame);
	if (parent && profile->nodes[parent].frame == move->frame)
		return parent;
	if (!*rest)
		*rest = put_node(profile, used, parent, move->frame);
	return *rest;
}

/* Moves the nodes that stay to the front. */
static void compact(struct incstack_profile *profile, struct move *move)
{
	size_t used = 1;

	move->map[INCSTACK_PROFILE_ROOT] = INCSTACK_PROFILE_ROOT;
	for (size_t i = 1; i < profile->nodes_used; i++) {
		size_t before = used;

		profile->meta.pruned += !move->kept[i] && profile->nodes[i].frame != move->frame;
		move->map[i] = place_node(profile, move, i, &used);
		move_weights(profile, i, move->map[i], used > before);
	}
	profile->nodes_used = used;
}

/* Nodes that stand for others are merged with new ones. Returns whether any node goes. */
static bool any_goes(const struct incstack_profile *profile, struct move *move)
{
	bool any = false;

	for (size_t i = 1; i < profile->nodes_used; i++) {
		any |= !move->kept[i];
		move->kept[i] &= profile->nodes[i].frame != move->frame;
	}
	return any;
}

static int prune(struct incstack_profile *profile, uint64_t parts, struct move *move)
{
	static const char name[] = "[smaller contexts]";
	int error = mark_large(profile, parts, move->kept);

	if (!error)
		error = incstack__frame_named(profile, name, sizeof(name) - 1, -1, 0, &move->frame);
	if (error)
		return error;
	incstack__timeline_drop(profile);
	if (!any_goes(profile, move))
		return 0;
	compact(profile, move);
	incstack__node_table_renew(profile);
	return 0;
}

int incstack_profile_prune(struct incstack_profile *profile, uint64_t parts)
{
	struct move move;
	int error = INCSTACK_ENOMEM;

	if (!profile || !parts)
		return INCSTACK_EINVAL;
	move.map = malloc(profile->nodes_used * sizeof(*move.map));
	move.kept = calloc(profile->nodes_used, sizeof(*move.kept));
	move.rest = calloc(profile->nodes_used, sizeof(*move.rest));
	if (move.map && move.kept && move.rest)
		error = prune(profile, parts, &move);
	free(move.map);
	free(move.kept);
	free(move.rest);
	return error;
}
