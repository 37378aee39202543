/* SPDX-License-Identifier: MIT
 *
 * The functions of a profile as files list them: those of its frames, each once.
 */
#ifndef INCSTACK_PROFILE_FUNCTION_SET_H
#define INCSTACK_PROFILE_FUNCTION_SET_H

#include "profile/cct.h"

struct incstack__function {
	uint32_t frame; /* one of its frames, which has its name and file */
};

struct incstack__function_set {
	struct incstack__function *functions; /* by their numbers */
	size_t used, room;
	struct incstack__table table;
};

int incstack__function_set_init(struct incstack__function_set *set);
void incstack__function_set_free(struct incstack__function_set *set);
/* The number of the function of a frame: that of frames of the same name and file. A frame
 * without a name is a function of its own. */
int incstack__function_of(struct incstack__function_set *set,
			  const struct incstack_profile *profile, uint32_t frame,
			  uint32_t *function);

#endif
