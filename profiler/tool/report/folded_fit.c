/* SPDX-License-Identifier: MIT
 *
 * Reduces a profile until its folded stacks fit into a file of a bounded size. Each line is a whole
 * stack, so the file grows with the number of contexts times their depth. The profile itself
 * shares what contexts have in common.
 */
#include <stdlib.h>

#include "folded_fit.h"
#include "profile/reduce.h"

static uint64_t digits_of(uint64_t weight)
{
	uint64_t digits = 1;

	for (; weight >= 10; weight /= 10)
		digits++;
	return digits;
}

/* Returns the bytes of all lines; UINT64_MAX if there is no memory. */
static uint64_t folded_bytes(const struct incstack_profile *profile, uint32_t kind)
{
	const uint32_t nodes = incstack_profile_nodes(profile);
	uint64_t *path = calloc(
		nodes, sizeof(*path)); /* for each node: the bytes of its names, each with a ';' */
	uint64_t sum = 0;

	if (path == NULL)
		return UINT64_MAX;
	for (uint32_t i = 1; i < nodes; i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};

		(void)incstack_profile_node(profile, i, &node);
		path[i] = path[node.parent] + node.frame.name_length + 1;
		if (node.weights[kind] > 0)
			sum += path[i] + digits_of(node.weights[kind]) + 1;
	}
	free(path);
	return sum;
}

int tool_folded_fit(struct incstack_profile *profile, uint32_t kind, uint64_t limit)
{
	uint64_t bytes = folded_bytes(profile, kind);
	int error = 0;

	for (uint64_t parts = 1u << 30; bytes > limit && error == 0 && parts > 0; parts /= 4) {
		error = incstack__profile_prune(profile, parts);
		bytes = folded_bytes(profile, kind);
	}
	return error == 0 && bytes == UINT64_MAX ? INCSTACK_ENOMEM : error;
}
