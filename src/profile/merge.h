/* SPDX-License-Identifier: MIT
 *
 * Finding the contexts of one profile in another; shared by merge and compare.
 */
#ifndef INCSTACK_PROFILE_MERGE_H
#define INCSTACK_PROFILE_MERGE_H

#include "cct.h"

enum incstack__sites {
	INCSTACK__SITES_KEPT,    /* frames with another bci are other frames */
	INCSTACK__SITES_IGNORED, /* only names count */
};

/* Makes in `into` a node for every node of `from`; *nodes says which. The caller
 * frees it. */
int incstack__map(struct incstack_profile *into, const struct incstack_profile *from,
		  enum incstack__sites sites, uint32_t **nodes);

/* Whether all have the same kinds. */
bool incstack__kinds_alike(const struct incstack_profile *const *profiles, size_t count);

uint64_t incstack__greatest_divisor(uint64_t a, uint64_t b);

#endif
