/* SPDX-License-Identifier: MIT
 *
 * The calling context tree that the oracle builds from its own record, and its
 * comparison with the one that incstack::profile folded from the traces: the same
 * contexts with the same weights.
 */
#include <stdlib.h>

#include <incstack/profile.h>

#include "cct.h"

struct node {
	uint64_t key, self;
	uint32_t first, next; /* child, sibling; 0: none */
};

struct cct {
	struct node *nodes; /* 0: the root */
	uint32_t count, room;
	struct incstack_profile *profile;
};

static const struct incstack_profile_kind kind = {"samples", "count"};

struct cct *cct_new(void)
{
	struct cct *c = calloc(1, sizeof(*c));
	c->nodes = calloc(1, sizeof(*c->nodes));
	c->count = c->room = 1;
	if (incstack_profile_create(&kind, 1, &c->profile))
		abort();
	return c;
}

void cct_free(struct cct *c)
{
	incstack_profile_destroy(c->profile);
	free(c->nodes);
	free(c);
}

static uint32_t find(const struct cct *c, uint32_t parent, uint64_t key)
{
	uint32_t i = c->nodes[parent].first;
	while (i && c->nodes[i].key != key)
		i = c->nodes[i].next;
	return i;
}

static uint32_t add(struct cct *c, uint32_t parent, uint64_t key)
{
	if (c->count == c->room) {
		c->room *= 2;
		c->nodes = realloc(c->nodes, c->room * sizeof(*c->nodes));
	}
	c->nodes[c->count] = (struct node){key, 0, 0, c->nodes[parent].first};
	c->nodes[parent].first = c->count;
	return c->count++;
}

void cct_add_record(struct cct *c, const uint64_t *keys, size_t count)
{
	uint32_t at = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t child = find(c, at, keys[i]);
		at = child ? child : add(c, at, keys[i]);
	}
	c->nodes[at].self++;
}

void cct_add_tree(struct cct *c, const struct incstack_tree *tree)
{
	if (incstack_profile_add_tree(c->profile, INCSTACK_PROFILE_ROOT, tree, NULL, NULL))
		abort();
}

/* Compares the trees. The library distinguishes inlined frames from others, the oracle does not. So
 * several of the library's nodes may be one node of the oracle. */
bool cct_same(const struct cct *c)
{
	uint32_t count = incstack_profile_nodes(c->profile), met = 1;
	uint32_t *mine = calloc(count, sizeof(*mine));
	int64_t *left = calloc(c->count, sizeof(*left)); /* -1 - self: not found yet */
	bool same = true;
	for (uint32_t i = 1; i < c->count; i++)
		left[i] = -1 - (int64_t)c->nodes[i].self;
	for (uint32_t i = 1; same && i < count; i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};
		if (incstack_profile_node(c->profile, i, &node))
			abort();
		uint32_t at = mine[i] =
			find(c, mine[node.parent],
			     node.frame.function << 32 | (uint32_t)node.frame.position);
		same = at != 0;
		if (at && left[at] < 0) {
			left[at] = -1 - left[at];
			met++;
		}
		left[at] -= (int64_t)node.weights[0];
		same &= left[at] >= 0;
	}
	for (uint32_t i = 1; i < c->count; i++)
		same &= left[i] == 0;
	free(left);
	free(mine);
	return same && met == c->count;
}
