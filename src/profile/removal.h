/* SPDX-License-Identifier: MIT
 *
 * Removes nodes whose weights were moved or taken out.
 */
#ifndef INCSTACK_PROFILE_REMOVAL_H
#define INCSTACK_PROFILE_REMOVAL_H

#include "cct.h"

/* Finds for each frame whether a pattern matches its function. */
int incstack__frames_match(const struct incstack_profile *profile,
			   bool (*matches)(const void *context,
					   const struct incstack_profile *profile, uint32_t frame),
			   const void *context, bool **matched);

/* Removes all nodes but the root and those that are kept, whose parents must be kept, too. In the timeline, node i
 * becomes the node of stands_for[i], or its samples are removed if that is INCSTACK_PROFILE_NONE. */
int incstack__nodes_remove(struct incstack_profile *profile, const bool *kept,
			   const uint32_t *stands_for);

#endif
