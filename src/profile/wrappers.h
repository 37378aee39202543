/* SPDX-License-Identifier: MIT
 *
 * Finds functions that hand out memory by what they do.
 */
#ifndef INCSTACK_PROFILE_WRAPPERS_H
#define INCSTACK_PROFILE_WRAPPERS_H

#include "cct.h"

/* Marks functions that hand out memory, besides those that are marked, by the numbers of functions[], which has one
 * for each frame. */
int incstack__guess_allocators(const struct incstack_profile *profile, const uint32_t *functions,
			       bool *is_allocator);

#endif
