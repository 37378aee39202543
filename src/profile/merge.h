/* SPDX-License-Identifier: MIT
 *
 * Finds the contexts of one profile in another.
 */
#ifndef INCSTACK_PROFILE_MERGE_H
#define INCSTACK_PROFILE_MERGE_H

#include "cct.h"

enum incstack__sites {
	INCSTACK__SITES_KEPT,    /* frames with different lines are different */
	INCSTACK__SITES_IGNORED, /* only names are compared */
};

/* Finds or adds a node of `into` for every node of `from`. *nodes has their numbers; the caller
 * frees it. */
int incstack__map(struct incstack_profile *into, const struct incstack_profile *from,
		  enum incstack__sites sites, uint32_t **nodes);

/* Finds or adds a frame of `into` for every frame of `from`. `map` has room for them. */
int incstack__map_frames(struct incstack_profile *into, const struct incstack_profile *from,
			 enum incstack__sites sites, uint32_t *map);

/* As incstack__map, if the frame of `into` is known for each frame of `from`. `map` has room for the nodes
 * of `from`. */
int incstack__map_nodes(struct incstack_profile *into, const struct incstack_profile *from,
			const uint32_t *frames, uint32_t *map);

/* Copies the meta data, the default kind and the period. */
int incstack__copy_meta(const struct incstack_profile *from, struct incstack_profile *into);

/* Creates an empty profile with the kinds of another one. */
int incstack__create_like(const struct incstack_profile *like, struct incstack_profile **made);

/* Whether all profiles have the same kinds. */
bool incstack__kinds_alike(const struct incstack_profile *const *profiles, size_t count);

uint64_t incstack__greatest_divisor(uint64_t a, uint64_t b);

#endif
