/* SPDX-License-Identifier: MIT
 *
 * The calling context tree of a heap profile; see cct.h.
 */
#include <stdlib.h>

#include <incstack/incstack.h>

#include "cct.h"

#define FIRST_ROOM 1024u

static int grow(struct incstack__cct *cct)
{
	const uint32_t room = cct->room == 0 ? FIRST_ROOM : 2 * cct->room;
	struct incstack__cct_node *nodes;

	if (room >= 1u << 30)
		return INCSTACK_ENOMEM;
	nodes = realloc(cct->nodes, room * sizeof(*nodes));
	if (!nodes)
		return INCSTACK_ENOMEM;
	cct->nodes = nodes;
	cct->room = room;
	return 0;
}

int incstack__cct_init(struct incstack__cct *cct)
{
	*cct = (struct incstack__cct){0};
	if (grow(cct) != 0 || incstack__table_init(&cct->table) != 0) {
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
	free(cct->table.slots);
	*cct = (struct incstack__cct){0};
}

static uint32_t add(struct incstack__cct *cct, uint32_t parent, uint64_t code, uint32_t hash)
{
	const uint32_t node = cct->count;

	if ((node == cct->room && grow(cct) != 0) ||
	    incstack__table_insert(&cct->table, hash, node) != 0)
		return INCSTACK__CCT_FAILED;
	cct->nodes[node] = (struct incstack__cct_node){
		.code = code,
		.parent = parent,
		.depth = cct->nodes[parent].depth + 1,
		.sibling = cct->nodes[parent].first_child,
	};
	cct->nodes[parent].first_child = node;
	cct->count++;
	return node;
}

uint32_t incstack__cct_child(struct incstack__cct *cct, uint32_t parent, uint64_t code)
{
	const uint32_t hash = incstack__hash_pair(code, parent);
	size_t cursor = hash;
	uint32_t at;

	while ((at = incstack__table_probe(&cct->table, hash, &cursor)) != INCSTACK__NONE)
		if (cct->nodes[at].parent == parent && cct->nodes[at].code == code)
			return at;
	return add(cct, parent, code, hash);
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
