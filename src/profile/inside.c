/* SPDX-License-Identifier: MIT
 *
 * Finds the contexts that are inside of another context of their function. One visit to each node, whatever
 * the depth is: the functions on the way to a node are counted.
 */
#include <stdlib.h>

#include "cct.h"

struct visit {
	const struct incstack__call *calls;
	uint32_t *first; /* the first child of each node; 0: none */
	uint32_t *next;  /* the next sibling of each node; 0: none */
	uint32_t *open;  /* nodes of each function on the way */
	bool *inside;
};

static void link_children(const struct visit *v, size_t nodes)
{
	for (uint32_t node = (uint32_t)nodes; node-- > 1;) {
		v->next[node] = v->first[v->calls[node].parent];
		v->first[v->calls[node].parent] = node;
	}
}

static void enter(const struct visit *v, uint32_t node)
{
	v->inside[node] = v->open[v->calls[node].function]++ > 0;
}

/* Leaves a node whose children were visited. Returns the next one: its sibling, or that of a caller; 0 at the
 * end. */
static uint32_t leave(const struct visit *v, uint32_t node)
{
	while (node) {
		v->open[v->calls[node].function]--;
		if (v->next[node])
			return v->next[node];
		node = v->calls[node].parent;
	}
	return 0;
}

static void visit_all(const struct visit *v)
{
	for (uint32_t node = v->first[0]; node;) {
		enter(v, node);
		node = v->first[node] ? v->first[node] : leave(v, node);
	}
}

int incstack__inside_itself(const struct incstack__call *calls, size_t nodes, size_t functions,
			    bool *inside)
{
	struct visit v = {.calls = calls, .inside = inside};
	int error = INCSTACK_ENOMEM;

	v.first = calloc(nodes, sizeof(*v.first));
	v.next = calloc(nodes, sizeof(*v.next));
	v.open = calloc(functions, sizeof(*v.open));
	if (v.first && v.next && v.open) {
		link_children(&v, nodes);
		visit_all(&v);
		error = 0;
	}
	free(v.first);
	free(v.next);
	free(v.open);
	return error;
}
