/* SPDX-License-Identifier: MIT
 *
 * Merges contexts by the names of their functions, before any of them is judged to be too small: many small
 * contexts that differ only in the place of a call may be a large box.
 */
#include "boxes.h"

#include <stdlib.h>

/* A context with less than 1 / 2^12 of every total is narrower than a pixel, or little wider. */
#define SMALLEST_LOG 12
/* A browser draws and inverts that many in a moment. */
#define BOXES_MOST 50000

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

static void fill(const struct incstack_profile *profile, const uint32_t *functions,
		 struct incstack__table *table, uint32_t *map, struct incstack__boxes *boxes)
{
	const uint32_t kinds = boxes->kinds;

	boxes->count = 1;
	for (uint32_t node = 0; node < profile->nodes_used; node++) {
		const struct incstack__node *n = &profile->nodes[node];

		if (node)
			map[node] =
				box_of(boxes, table,
				       &(struct incstack__box){.parent = map[n->parent],
							       .frame = n->frame,
							       .function = functions[n->frame]});
		for (uint32_t k = 0; k < kinds; k++)
			boxes->own[map[node] * kinds + k] +=
				incstack__profile_self(profile, node, k);
	}
	for (size_t i = boxes->count; i-- > 0;)
		for (uint32_t k = 0; k < kinds; k++) {
			boxes->total[i * kinds + k] += boxes->own[i * kinds + k];
			if (i)
				boxes->total[boxes->box[i].parent * kinds + k] +=
					boxes->total[i * kinds + k];
		}
}

int incstack__boxes_make(const struct incstack_profile *profile, struct incstack__boxes *boxes)
{
	size_t nodes = profile->nodes_used;
	uint32_t *map = calloc(nodes, sizeof(*map)), *functions = NULL;
	struct incstack__table table = {0};
	int error = incstack__table_init_for(&table, nodes);

	*boxes = (struct incstack__boxes){.kinds = profile->kinds};
	boxes->box = calloc(nodes, sizeof(*boxes->box));
	boxes->own = calloc(nodes * profile->kinds, sizeof(*boxes->own));
	boxes->total = calloc(nodes * profile->kinds, sizeof(*boxes->total));
	if (!map || !boxes->box || !boxes->own || !boxes->total)
		error = INCSTACK_ENOMEM;
	if (!error)
		error = incstack__frame_functions(profile, &functions);
	if (!error)
		fill(profile, functions, &table, map, boxes);
	free(table.slots);
	free(functions);
	free(map);
	if (error)
		incstack__boxes_free(boxes);
	return error;
}

void incstack__boxes_free(struct incstack__boxes *boxes)
{
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

void incstack__boxes_select(struct incstack__boxes *boxes)
{
	unsigned low = SMALLEST_LOG, high = 64; /* of the part: 1 / 2^low is always kept */

	if (mark(boxes, UINT64_MAX) <= BOXES_MOST)
		return;
	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (mark(boxes, UINT64_C(1) << middle) <= BOXES_MOST)
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
