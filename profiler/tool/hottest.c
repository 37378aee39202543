/* SPDX-License-Identifier: MIT
 *
 * Orders contexts by their own weight. Of equal ones, that which was added first is first.
 */
#include "hottest.h"
#include "profile/nodes.h"

#include <stdlib.h>

struct weighed {
	uint64_t weight;
	uint32_t node;
};

static int by_weight(const void *a, const void *b)
{
	const struct weighed *left = a;
	const struct weighed *right = b;

	if (left->weight != right->weight)
		return left->weight < right->weight ? 1 : -1;
	return left->node < right->node ? -1 : left->node > right->node;
}

int tool_hottest_find(const struct incstack_profile *profile, uint32_t kind, size_t most,
		      struct tool_hottest *hottest)
{
	const uint32_t nodes = incstack_profile_nodes(profile);
	struct weighed *all = malloc(nodes * sizeof(*all));
	size_t count = 0;

	*hottest = (struct tool_hottest){0};
	for (uint32_t node = 0; all != NULL && node < nodes; node++) {
		const uint64_t weight = incstack__profile_self(profile, node, kind);

		hottest->total += weight;
		if (weight > 0 && node != INCSTACK_PROFILE_ROOT)
			all[count++] = (struct weighed){weight, node};
	}
	if (count > 0)
		qsort(all, count, sizeof(*all), by_weight);
	hottest->count = count < most ? count : most;
	hottest->nodes = calloc(hottest->count + 1, sizeof(*hottest->nodes));
	for (size_t i = 0; hottest->nodes != NULL && i < hottest->count; i++)
		hottest->nodes[i] = all[i].node;
	free(all);
	if (all != NULL && hottest->nodes != NULL)
		return 0;
	free(hottest->nodes);
	hottest->nodes = NULL;
	return INCSTACK_ENOMEM;
}
