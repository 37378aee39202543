/* SPDX-License-Identifier: MIT
 *
 * Writes the boxes of the page, callers before callees. A box is how many levels above the last box its caller
 * is, its frame, and those of its own weights that are not 0. The boxes that are left out below one box are one
 * box in the page, without a frame, so that no function gets their weight.
 */
#include <stdlib.h>

#include "packed.h"
#include "page.h"

struct rest {
	uint32_t count; /* of the contexts that are left out below a box */
	uint32_t number;
};

struct tree {
	struct incstack__page *page;
	struct incstack__packed packed;
	uint32_t *child,
		*next; /* the first callee of each kept box, and the next one of its caller */
	struct rest *rests;
	uint64_t *rest_own;
	uint32_t last_depth;
};

static void put_weights(struct tree *tree, const uint64_t *weights)
{
	const uint32_t kinds = tree->page->boxes.kinds;
	uint32_t mask = 0;

	for (uint32_t k = 0; k < kinds; k++)
		mask |= (uint32_t)(weights[k] != 0) << k;
	incstack__packed_number(&tree->packed, mask);
	for (uint32_t k = 0; k < kinds; k++)
		if (weights[k])
			incstack__packed_number(&tree->packed, weights[k]);
}

/* Writes where a box hangs. The flag is for the box. */
static void put_place(struct tree *tree, uint32_t depth, bool flag)
{
	incstack__packed_number(&tree->packed, (uint64_t)(tree->last_depth + 1 - depth) * 2 + flag);
	tree->last_depth = depth;
}

static void enter(struct tree *tree, uint32_t i, uint32_t depth)
{
	struct incstack__page *page = tree->page;
	const struct incstack__box *box = &page->boxes.box[i];

	page->number[i] = page->count++;
	if (i) {
		put_place(tree, depth, box->has_lines);
		(void)incstack__page_function(page, box);
		incstack__packed_number(&tree->packed,
					incstack__page_number(&page->frames, box->frame) + 1);
	}
	put_weights(tree, page->boxes.own + (size_t)i * page->boxes.kinds);
}

static void leave(struct tree *tree, uint32_t i, uint32_t depth)
{
	if (!tree->rests || !tree->rests[i].count)
		return;
	tree->rests[i].number = tree->page->count++;
	put_place(tree, depth + 1, false);
	incstack__packed_number(&tree->packed, 0);
	incstack__packed_number(&tree->packed, tree->rests[i].count);
	put_weights(tree, tree->rest_own + (size_t)i * tree->page->boxes.kinds);
}

static void put_boxes(struct tree *tree)
{
	const struct incstack__boxes *boxes = &tree->page->boxes;
	uint32_t i = 0, depth = 0;

	for (;;) {
		enter(tree, i, depth);
		if (tree->child[i]) {
			i = tree->child[i];
			depth++;
			continue;
		}
		while (leave(tree, i, depth), i && !tree->next[i]) {
			i = boxes->box[i].parent;
			depth--;
		}
		if (!i)
			return;
		i = tree->next[i];
	}
}

static void link_kept(struct tree *tree)
{
	const struct incstack__boxes *boxes = &tree->page->boxes;

	for (uint32_t i = (uint32_t)boxes->count - 1; i; i--) {
		uint32_t parent = boxes->box[i].parent;

		if (!boxes->box[i].is_kept)
			continue;
		tree->next[i] = tree->child[parent];
		tree->child[parent] = i;
	}
}

/* Adds up what is left out below each kept box. */
static void add_rests(struct tree *tree)
{
	const struct incstack__boxes *boxes = &tree->page->boxes;

	for (size_t i = boxes->count - 1; i; i--) {
		uint32_t parent = boxes->box[i].parent;

		if (!incstack__page_leaves_out(tree->page, i))
			continue;
		tree->rests[parent].count += tree->rests[i].count + 1;
		if (!boxes->box[parent].is_kept)
			continue;
		for (uint32_t k = 0; k < boxes->kinds; k++)
			tree->rest_own[parent * boxes->kinds + k] +=
				boxes->total[i * boxes->kinds + k];
	}
}

static int find_rests(struct tree *tree)
{
	const struct incstack__boxes *boxes = &tree->page->boxes;

	for (size_t i = 1; i < boxes->count; i++)
		tree->page->hidden += incstack__page_leaves_out(tree->page, i);
	if (!tree->page->hidden)
		return 0;
	tree->rests = calloc(boxes->count, sizeof(*tree->rests));
	tree->rest_own = calloc(boxes->count * boxes->kinds, sizeof(*tree->rest_own));
	if (!tree->rests || !tree->rest_own)
		return INCSTACK_ENOMEM;
	add_rests(tree);
	return 0;
}

/* A box that is left out has the number of the box that stands for it. */
static void number_left_out(struct tree *tree)
{
	const struct incstack__boxes *boxes = &tree->page->boxes;
	uint32_t *number = tree->page->number;

	for (size_t i = 1; i < boxes->count; i++) {
		uint32_t parent = boxes->box[i].parent;

		if (boxes->box[i].is_kept)
			continue;
		number[i] = number[parent];
		if (boxes->box[parent].is_kept && tree->rests && tree->rests[parent].count)
			number[i] = tree->rests[parent].number;
	}
}

static int write_with(struct tree *tree)
{
	FILE *stream = tree->page->stream;
	int error = find_rests(tree);

	if (error)
		return error;
	link_kept(tree);
	fputs("\"boxes\":", stream);
	incstack__packed_begin(&tree->packed, stream);
	put_boxes(tree);
	incstack__packed_end(&tree->packed);
	number_left_out(tree);
	fprintf(stream, ",\n\"count\":%u,\"hidden\":", tree->page->count);
	incstack__json_number(tree->page->hidden, stream);
	return 0;
}

int incstack__write_tree(struct incstack__page *page)
{
	struct tree tree = {.page = page};
	int error = INCSTACK_ENOMEM;

	tree.child = calloc(page->boxes.count, sizeof(*tree.child));
	tree.next = calloc(page->boxes.count, sizeof(*tree.next));
	if (tree.child && tree.next)
		error = write_with(&tree);
	free(tree.child);
	free(tree.next);
	free(tree.rests);
	free(tree.rest_own);
	return error;
}
