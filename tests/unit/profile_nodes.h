/* SPDX-License-Identifier: MIT
 *
 * Looks at the nodes and the kinds of a profile.
 */
#ifndef INCSTACK_TESTS_PROFILE_NODES_H
#define INCSTACK_TESTS_PROFILE_NODES_H

#include <check.h>

#include <incstack/profile.h>

static inline struct incstack_profile_node node_at(const struct incstack_profile *profile,
						   uint32_t number)
{
	struct incstack_profile_node node = {.size = sizeof(node)};

	ck_assert_int_eq(incstack_profile_node(profile, number, &node), 0);
	return node;
}

static inline uint32_t count_kinds(const struct incstack_profile *profile)
{
	struct incstack_profile_kind kind;
	uint32_t count = 0;

	while (incstack_profile_kind(profile, count, &kind) == 0)
		count++;
	return count;
}

#endif
