/* SPDX-License-Identifier: MIT
 *
 * The calling context tree of a heap profile; see cct.h.
 */
#include <stdlib.h>

#include <incstack/incstack.h>

#include "cct.h"

#define FIRST_ROOM 1024u

static uint32_t hash_of(const struct incstack__cct *cct, uint32_t parent, uint64_t code)
{
	uint64_t hash = (code ^ (uint64_t)parent << 32 ^ parent) * 0x9e3779b97f4a7c15ull;

	hash ^= hash >> 32;
	return (uint32_t)(hash * 0xd6e8feb86659fd93ull >> 32) & (cct->table_size - 1);
}

static void insert(struct incstack__cct *cct, uint32_t node)
{
	uint32_t at = hash_of(cct, cct->nodes[node].parent, cct->nodes[node].code);

	while (cct->table[at] != 0)
		at = (at + 1) & (cct->table_size - 1);
	cct->table[at] = node;
}

/* Doubles the table, which is at most half full. */
static int grow(struct incstack__cct *cct)
{
	const uint32_t room = cct->room == 0 ? FIRST_ROOM : 2 * cct->room;
	struct incstack__cct_node *nodes;
	uint32_t *table;

	if (room >= 1u << 30)
		return INCSTACK_ENOMEM;
	nodes = realloc(cct->nodes, room * sizeof(*nodes));
	if (nodes == NULL)
		return INCSTACK_ENOMEM;
	cct->nodes = nodes;
	table = calloc(2 * (size_t)room, sizeof(*table));
	if (table == NULL)
		return INCSTACK_ENOMEM;
	free(cct->table);
	cct->table = table;
	cct->table_size = 2 * room;
	cct->room = room;
	for (uint32_t node = 1; node < cct->count; node++)
		insert(cct, node);
	return 0;
}

int incstack__cct_init(struct incstack__cct *cct)
{
	*cct = (struct incstack__cct){0};
	if (grow(cct) != 0) {
		incstack__cct_free(cct);
		return INCSTACK_ENOMEM;
	}
	cct->nodes[INCSTACK__CCT_ROOT] = (struct incstack__cct_node){0};
	cct->count = 1;
	return 0;
}

void incstack__cct_free(struct incstack__cct *cct)
{
	free(cct->nodes);
	free(cct->table);
	*cct = (struct incstack__cct){0};
}

static uint32_t add(struct incstack__cct *cct, uint32_t parent, uint64_t code)
{
	const uint32_t node = cct->count;

	if (node == cct->room && grow(cct) != 0)
		return INCSTACK__CCT_FAILED;
	cct->nodes[node] = (struct incstack__cct_node){
		.code = code,
		.parent = parent,
		.depth = cct->nodes[parent].depth + 1,
		.sibling = cct->nodes[parent].first_child,
	};
	cct->nodes[parent].first_child = node;
	cct->count++;
	insert(cct, node);
	return node;
}

uint32_t incstack__cct_child(struct incstack__cct *cct, uint32_t parent, uint64_t code)
{
	uint32_t at = hash_of(cct, parent, code);

	for (; cct->table[at] != 0; at = (at + 1) & (cct->table_size - 1)) {
		const struct incstack__cct_node *node = &cct->nodes[cct->table[at]];

		if (node->parent == parent && node->code == code)
			return cct->table[at];
	}
	return add(cct, parent, code);
}

uint32_t incstack__cct_common(const struct incstack__cct *cct, uint32_t a, uint32_t b,
			      uint64_t *steps)
{
	while (a != b) {
		if (*steps == 0)
			return INCSTACK__CCT_FAILED;
		--*steps;
		if (cct->nodes[a].depth >= cct->nodes[b].depth)
			a = cct->nodes[a].parent;
		else
			b = cct->nodes[b].parent;
	}
	return a;
}
