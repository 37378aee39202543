/* SPDX-License-Identifier: MIT
 *
 * What the traces of heap.h and mixed.h share: a node below the root whose frame is only a name, and the
 * weights of a trace.
 */
#ifndef INCSTACK__PROFILE_NAMED_ROOT_H
#define INCSTACK__PROFILE_NAMED_ROOT_H

#include <string.h>

#include <incstack/profile.h>

static inline int incstack__named_root(struct incstack_profile *profile, const char *name,
				       uint32_t *node)
{
	const struct incstack_profile_frame frame = {
		.size = sizeof(frame), .name = name, .name_length = strlen(name)};
	return incstack_profile_add_node(profile, INCSTACK_PROFILE_ROOT, &frame, node);
}

/* Adds the weights to a node. It is the root if all frames were left out. */
static inline int incstack__add_to(struct incstack_profile *profile, uint32_t node,
				   const uint64_t *weights)
{
	int error = 0;
	if (node == INCSTACK_PROFILE_ROOT)
		error = incstack__named_root(profile, "[left out]", &node);
	return error ? error : incstack_profile_add_weights(profile, node, weights);
}

#endif
