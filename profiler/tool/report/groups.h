/* SPDX-License-Identifier: MIT
 *
 * The contexts of a profile that weigh most, where those that differ only in the depth of a recursion are one.
 */
#ifndef INCSTACK_TOOL_GROUPS_H
#define INCSTACK_TOOL_GROUPS_H

#include <stddef.h>

#include <incstack/profile.h>

struct tool_group {
	uint64_t weight;
	uint64_t heaviest; /* the weight of `node` alone */
	uint32_t node;     /* the heaviest context */
	uint32_t count;    /* of contexts */
};

struct tool_groups {
	struct tool_group *all; /* the heaviest first; the caller frees them */
	size_t count;
	uint64_t total; /* of all contexts */
};

/* Returns 0 or INCSTACK_ENOMEM. */
int tool_groups_find(const struct incstack_profile *profile, uint32_t kind,
		     struct tool_groups *groups);

#endif
