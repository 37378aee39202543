/* SPDX-License-Identifier: MIT
 *
 * The functions of a profile's frames, each once, as some file formats list them.
 */
#ifndef INCSTACK_PROFILE_FUNCTION_SET_H
#define INCSTACK_PROFILE_FUNCTION_SET_H

#include "profile/cct.h"

struct incstack__function {
	uint32_t frame; /* one of its frames, which has its name, file and module */
};

struct incstack__function_set {
	struct incstack__function *functions; /* by their numbers */
	size_t used, room;
	struct incstack__table table;
};

int incstack__function_set_init(struct incstack__function_set *set);
void incstack__function_set_free(struct incstack__function_set *set);
/* Finds or adds the function of a frame. Frames with the same name, file and module have the same one. A
 * frame without a name is a function of its own. */
int incstack__function_of(struct incstack__function_set *set,
			  const struct incstack_profile *profile, uint32_t frame,
			  uint32_t *function);

#endif
