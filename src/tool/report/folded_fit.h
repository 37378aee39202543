/* SPDX-License-Identifier: MIT
 *
 * Makes a profile's folded stacks fit into a file of a bounded size.
 */
#ifndef INCSTACK_TOOL_FOLDED_FIT_H
#define INCSTACK_TOOL_FOLDED_FIT_H

#include <incstack/profile.h>

/* Merges the smallest contexts into their callers until the folded stacks of kind 0 take at most
 * `limit` bytes. meta.pruned of the profile counts them. Returns 0 or INCSTACK_E*. */
int tool_folded_fit(struct incstack_profile *profile, uint64_t limit);

#endif
