/* SPDX-License-Identifier: MIT
 *
 * Makes a profile's folded stacks fit into a file of a bounded size.
 */
#ifndef INCSTACK_TOOL_FOLDED_FIT_H
#define INCSTACK_TOOL_FOLDED_FIT_H

#include <incstack/profile.h>

/* Prunes the smallest contexts until the folded stacks of that kind take at most `limit` bytes.
 * meta.pruned of the profile counts them. Returns 0 or INCSTACK_E*. */
int tool_folded_fit(struct incstack_profile *profile, uint32_t kind, uint64_t limit);

#endif
