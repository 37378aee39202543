/* SPDX-License-Identifier: MIT
 *
 * The boxes of a flame graph: the contexts of a profile, with those as one that have the same functions.
 */
#ifndef INCSTACK_PROFILE_BOXES_H
#define INCSTACK_PROFILE_BOXES_H

#include "profile/cct.h"

/* Box 0 is the root. A box comes after its parent. */
struct incstack__boxes {
	struct incstack__box {
		uint32_t parent;
		uint32_t
			frame; /* of those that it stands for, the one with the most weight of kind 0 */
		uint32_t function;
		bool is_kept;
		bool has_lines; /* it stands for frames with different files or lines */
	} * box;
	uint64_t *own, *total; /* `kinds` numbers for each box */
	uint32_t *of_node;     /* the box of each node of the profile */
	size_t count;
	uint32_t kinds;
};

int incstack__boxes_make(const struct incstack_profile *profile, struct incstack__boxes *boxes);
void incstack__boxes_free(struct incstack__boxes *boxes);

/* Marks the boxes that are put into the page: all that have a weight or, if these are more than `most`, those
 * above a part of the total that no screen shows. A kept box has a kept parent. */
void incstack__boxes_select(struct incstack__boxes *boxes, size_t most);
/* Finds the boxes that are inside of another box of their function. Functions are below `functions`. */
int incstack__boxes_inside_themselves(const struct incstack__boxes *boxes, size_t functions,
				      bool *inside);

#endif
