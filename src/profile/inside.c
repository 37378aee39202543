/* SPDX-License-Identifier: MIT
 *
 * Finds the contexts that are inside of another context of their function. One visit to each node, whatever
 * the depth is: the functions on the way to a node are counted.
 */
#include <stdlib.h>

#include "cct.h"

struct search {
	const struct incstack__call *calls;
	uint32_t *open; /* nodes of each function on the way */
	bool *inside;
};

static int enter(void *context, uint32_t node)
{
	const struct search *search = context;

	search->inside[node] = search->open[search->calls[node].function]++ > 0;
	return 0;
}

static void leave(void *context, uint32_t node)
{
	const struct search *search = context;

	search->open[search->calls[node].function]--;
}

int incstack__inside_itself(const struct incstack__call *calls, size_t nodes, size_t functions,
			    bool *inside)
{
	struct search search = {
		.calls = calls, .open = calloc(functions, sizeof(*search.open)), .inside = inside};
	const struct incstack__visitor visitor = {enter, leave, &search};
	int error = search.open ? incstack__calls_visit(calls, nodes, &visitor) : INCSTACK_ENOMEM;

	free(search.open);
	return error;
}
