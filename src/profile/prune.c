/* SPDX-License-Identifier: MIT
 *
 * Makes a profile smaller: merges the small contexts below each caller into one, or removes all contexts.
 */
#include <stdlib.h>
#include <string.h>

#include "cct.h"
#include "reduce.h"

int incstack__profile_clear(struct incstack_profile *profile)
{
	if (!profile)
		return INCSTACK_EINVAL;
	incstack__timeline_drop(profile);
	incstack__curve_drop(profile);
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

/* A caller comes before its callees, so the first nodes are a tree, too. */
static void keep_first(const struct incstack_profile *profile, struct move *move, size_t most)
{
	for (size_t i = 0, kept = 0; i < profile->nodes_used; i++)
		if (move->kept[i])
			move->kept[i] = ++kept <= most;
}

/* Chooses what stays. Nodes that stand for others do not: they are merged with new ones. Returns how many
 * nodes stay, or an error, which is negative. */
static int64_t choose(const struct incstack_profile *profile, struct move *move, uint64_t parts)
{
	int64_t count = 0;
	int error;

	memset(move->kept, 0, profile->nodes_used * sizeof(*move->kept));
	error = mark_large(profile, parts, move->kept);
	if (error)
		return error;
	for (size_t i = 0; i < profile->nodes_used; i++) {
		move->kept[i] &=
			i == INCSTACK_PROFILE_ROOT || profile->nodes[i].frame != move->frame;
		count += move->kept[i];
	}
	return count;
}

static int choose_large(const struct incstack_profile *profile, struct move *move, uint64_t parts)
{
	const int64_t count = choose(profile, move, parts);

	return count < 0 ? (int)count : 0;
}

/* Each node that stays may get a child that stands for others. */
static int choose_few(const struct incstack_profile *profile, struct move *move, uint64_t nodes)
{
	const uint64_t most = nodes / 2;
	uint64_t parts = 1;
	int64_t count;

	for (uint32_t k = 0; k < profile->kinds; k++)
		if (profile->total[k] > parts)
			parts = profile->total[k];
	do {
		parts -= parts / 2;
		count = choose(profile, move, parts);
	} while (count > 0 && (uint64_t)count > most && parts > 1);
	if (count > 0 && (uint64_t)count > most)
		keep_first(profile, move, most);
	return count < 0 ? (int)count : 0;
}

typedef int choose_fn(const struct incstack_profile *profile, struct move *move, uint64_t number);

static int reduce_by(struct incstack_profile *profile, struct move *move, choose_fn *choose_by,
		     uint64_t number)
{
	static const char name[] = "[smaller contexts]";
	int error = incstack__frame_named(profile, name, sizeof(name) - 1, &move->frame);

	if (!error)
		error = choose_by(profile, move, number);
	if (error)
		return error;
	incstack__timeline_drop(profile);
	incstack__curve_drop(profile);
	compact(profile, move);
	incstack__node_table_renew(profile);
	return 0;
}

static int reduce(struct incstack_profile *profile, choose_fn *choose_by, uint64_t number)
{
	struct move move;
	int error = INCSTACK_ENOMEM;

	move.map = malloc(profile->nodes_used * sizeof(*move.map));
	move.kept = calloc(profile->nodes_used, sizeof(*move.kept));
	move.rest = calloc(profile->nodes_used, sizeof(*move.rest));
	if (move.map && move.kept && move.rest)
		error = reduce_by(profile, &move, choose_by, number);
	free(move.map);
	free(move.kept);
	free(move.rest);
	return error;
}

int incstack__profile_prune(struct incstack_profile *profile, uint64_t parts)
{
	return profile && parts ? reduce(profile, choose_large, parts) : INCSTACK_EINVAL;
}

int incstack__profile_shrink(struct incstack_profile *profile, uint32_t nodes)
{
	if (!profile || nodes < 3)
		return INCSTACK_EINVAL;
	return profile->nodes_used <= nodes ? 0 : reduce(profile, choose_few, nodes);
}
