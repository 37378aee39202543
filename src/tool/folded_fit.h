/* SPDX-License-Identifier: MIT
 *
 * A profile whose folded stacks fit into a file of a bounded size.
 */
#ifndef INCSTACK_TOOL_FOLDED_FIT_H
#define INCSTACK_TOOL_FOLDED_FIT_H

#include <incstack/profile.h>

/* Adds the smallest contexts to their callers until the folded stacks of kind 0 take at most
 * `limit` bytes. What was added is counted in the profile's meta.pruned. 0 or INCSTACK_E*. */
int tool_folded_fit(struct incstack_profile *profile, uint64_t limit);

#endif
