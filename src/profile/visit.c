/* SPDX-License-Identifier: MIT
 *
 * Visits the nodes of a tree of calls, callers before the calls that they make. The depth of the tree is no limit,
 * because the visit needs no stack.
 */
#include <stdlib.h>

#include "cct.h"

struct links {
	uint32_t *first; /* the first child of each node; 0: none */
	uint32_t *next;  /* the next sibling of each node; 0: none */
};

static void link_children(const struct links *links, const struct incstack__call *calls,
			  size_t nodes)
{
	for (uint32_t node = (uint32_t)nodes; node-- > 1;) {
		links->next[node] = links->first[calls[node].parent];
		links->first[calls[node].parent] = node;
	}
}

/* Leaves a node whose children were visited. Returns the next node: its sibling, or that of a caller; 0 at the
 * end. */
static uint32_t leave(const struct links *links, const struct incstack__call *calls,
		      const struct incstack__visitor *visitor, uint32_t node)
{
	while (node) {
		visitor->leave(visitor->context, node);
		if (links->next[node])
			return links->next[node];
		node = calls[node].parent;
	}
	return 0;
}

static int visit_all(const struct links *links, const struct incstack__call *calls,
		     const struct incstack__visitor *visitor)
{
	for (uint32_t node = links->first[0]; node;) {
		int error = visitor->enter(visitor->context, node);
		if (error)
			return error;
		node = links->first[node] ? links->first[node] : leave(links, calls, visitor, node);
	}
	return 0;
}

int incstack__calls_visit(const struct incstack__call *calls, size_t nodes,
			  const struct incstack__visitor *visitor)
{
	struct links links = {.first = calloc(nodes, sizeof(*links.first)),
			      .next = calloc(nodes, sizeof(*links.next))};
	int error = INCSTACK_ENOMEM;

	if (links.first && links.next) {
		link_children(&links, calls, nodes);
		error = visit_all(&links, calls, visitor);
	}
	free(links.first);
	free(links.next);
	return error;
}
