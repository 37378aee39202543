/* SPDX-License-Identifier: MIT
 *
 * Merges contexts by the names of their functions, before any of them is judged to be too small: many small
 * contexts that differ only in the place of a call may be a large box.
 */
#include "boxes.h"

#include <stdlib.h>

/* A context with less than 1 / 2^12 of every total is narrower than a pixel, or little wider. */
#define SMALLEST_LOG 12
/* Finds the box, or adds it. There is room for a box for each node. */
static uint32_t box_of(struct incstack__boxes *boxes, struct incstack__table *table,
		       const struct incstack__box *wanted)
{
	uint32_t hash = incstack__hash_pair(wanted->parent, wanted->function), at;
	size_t cursor = hash;

	while ((at = incstack__table_probe(table, hash, &cursor)) != INCSTACK__NONE)
		if (boxes->box[at].parent == wanted->parent &&
		    boxes->box[at].function == wanted->function)
			return at;
	at = (uint32_t)boxes->count++;
	boxes->box[at] = *wanted;
	(void)incstack__table_insert(table, hash, at); /* cannot fail: it was made large enough */
	return at;
}

static void add_own(const struct incstack_profile *profile, uint32_t node,
		    struct incstack__boxes *boxes)
{
	uint64_t *own = boxes->own + (size_t)boxes->of_node[node] * boxes->kinds;

	for (uint32_t k = 0; k < boxes->kinds; k++)
		own[k] += incstack__profile_self(profile, node, k);
}

static void add_up(struct incstack__boxes *boxes)
{
	const uint32_t kinds = boxes->kinds;

	for (size_t i = boxes->count; i-- > 0;)
		for (uint32_t k = 0; k < kinds; k++) {
			boxes->total[i * kinds + k] += boxes->own[i * kinds + k];
			if (i)
				boxes->total[boxes->box[i].parent * kinds + k] +=
					boxes->total[i * kinds + k];
		}
}

static void fill(const struct incstack_profile *profile, const uint32_t *functions,
		 struct incstack__table *table, struct incstack__boxes *boxes)
{
	uint32_t *map = boxes->of_node;

	boxes->count = 1;
	for (uint32_t node = 0; node < profile->nodes_used; node++) {
		const struct incstack__node *n = &profile->nodes[node];

		if (node)
			map[node] =
				box_of(boxes, table,
				       &(struct incstack__box){.parent = map[n->parent],
							       .frame = n->frame,
							       .function = functions[n->frame]});
		add_own(profile, node, boxes);
	}
	add_up(boxes);
}

/* Gives each box the frame of the node with the most weight. The nodes of a box may be calls from different
 * lines. */
static void choose_frames(const struct incstack_profile *profile, uint64_t *weight, uint64_t *best,
			  struct incstack__boxes *boxes)
{
	for (uint32_t node = profile->nodes_used ? (uint32_t)profile->nodes_used - 1 : 0; node;
	     node--) {
		const struct incstack__node *n = &profile->nodes[node];
		const struct incstack__frame *frame = &profile->frames[n->frame], *chosen;
		struct incstack__box *box = &boxes->box[boxes->of_node[node]];

		weight[node] += incstack__profile_self(profile, node, 0);
		weight[n->parent] += weight[node];
		chosen = &profile->frames[box->frame];
		box->has_lines |= frame->line != chosen->line || frame->file != chosen->file;
		if (weight[node] <= best[boxes->of_node[node]])
			continue;
		best[boxes->of_node[node]] = weight[node];
		box->frame = n->frame;
	}
}

static int find_frames(const struct incstack_profile *profile, struct incstack__boxes *boxes)
{
	uint64_t *weight = calloc(profile->nodes_used, sizeof(*weight));
	uint64_t *best = calloc(boxes->count, sizeof(*best));
	const bool made = weight && best;

	if (made)
		choose_frames(profile, weight, best, boxes);
	free(weight);
	free(best);
	return made ? 0 : INCSTACK_ENOMEM;
}

int incstack__boxes_make(const struct incstack_profile *profile, struct incstack__boxes *boxes)
{
	size_t nodes = profile->nodes_used;
	uint32_t *functions = NULL;
	struct incstack__table table = {0};
	int error = incstack__table_init_for(&table, nodes);

	*boxes = (struct incstack__boxes){.kinds = profile->kinds};
	boxes->of_node = calloc(nodes, sizeof(*boxes->of_node));
	boxes->box = calloc(nodes, sizeof(*boxes->box));
	boxes->own = calloc(nodes * profile->kinds, sizeof(*boxes->own));
	boxes->total = calloc(nodes * profile->kinds, sizeof(*boxes->total));
	if (!boxes->of_node || !boxes->box || !boxes->own || !boxes->total)
		error = INCSTACK_ENOMEM;
	if (!error)
		error = incstack__frame_functions(profile, &functions);
	if (!error) {
		fill(profile, functions, &table, boxes);
		error = find_frames(profile, boxes);
	}
	free(table.slots);
	free(functions);
	if (error)
		incstack__boxes_free(boxes);
	return error;
}

void incstack__boxes_free(struct incstack__boxes *boxes)
{
	free(boxes->of_node);
	free(boxes->box);
	free(boxes->own);
	free(boxes->total);
	*boxes = (struct incstack__boxes){0};
}

static bool is_above(const struct incstack__boxes *boxes, size_t box, uint64_t parts)
{
	for (uint32_t k = 0; k < boxes->kinds; k++)
		if (boxes->total[box * boxes->kinds + k] > boxes->total[k] / parts)
			return true;
	return false;
}

/* Marks the boxes above a part of the total, and returns how many there are. */
static size_t mark(struct incstack__boxes *boxes, uint64_t parts)
{
	size_t count = 0;

	boxes->box[0].is_kept = true;
	for (size_t i = 1; i < boxes->count; i++) {
		boxes->box[i].is_kept = is_above(boxes, i, parts);
		count += boxes->box[i].is_kept;
	}
	return count;
}

void incstack__boxes_select(struct incstack__boxes *boxes, size_t most)
{
	unsigned low = SMALLEST_LOG, high = 64; /* of the part: 1 / 2^low is always kept */

	if (mark(boxes, UINT64_MAX) <= most)
		return;
	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (mark(boxes, UINT64_C(1) << middle) <= most)
			low = middle;
		else
			high = middle;
	}
	(void)mark(boxes, UINT64_C(1) << low);
}

int incstack__boxes_inside_themselves(const struct incstack__boxes *boxes, size_t functions,
				      bool *inside)
{
	struct incstack__call *calls = calloc(boxes->count, sizeof(*calls));
	int error;

	if (!calls)
		return INCSTACK_ENOMEM;
	for (size_t i = 1; i < boxes->count; i++)
		calls[i] = (struct incstack__call){boxes->box[i].parent, boxes->box[i].function};
	error = incstack__inside_itself(calls, boxes->count, functions, inside);
	free(calls);
	return error;
}
