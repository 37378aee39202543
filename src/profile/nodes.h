/* SPDX-License-Identifier: MIT
 *
 * Single facts of a node, for loops over all nodes; incstack_profile_node copies all of them. For the
 * rest of libincstack_profile and the program incstack only. Conventions as in profile.h.
 */
#ifndef INCSTACK_PROFILE_NODES_H
#define INCSTACK_PROFILE_NODES_H

#include <stdbool.h>

#include <incstack/profile.h>

/* Returns the parent of a node; INCSTACK_PROFILE_NONE for the root and for a node that does
 * not exist.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
uint32_t incstack__profile_parent(const struct incstack_profile *profile, uint32_t node);

/* Returns the weight of a node without its callees; 0 if the node or kind does not exist.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
uint64_t incstack__profile_self(const struct incstack_profile *profile, uint32_t node,
				uint32_t kind);

/* Whether a node, which must exist, has a weight of any kind without its callees.
 * Thread: owner. Signal: no. Allocates: never. Blocks: never. */
bool incstack__profile_weighs(const struct incstack_profile *profile, uint32_t node);

#endif
