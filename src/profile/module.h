/* SPDX-License-Identifier: MIT
 *
 * Where the code of frames lies.
 */
#ifndef INCSTACK_PROFILE_MODULE_H
#define INCSTACK_PROFILE_MODULE_H

#include "cct.h"

/* The module, its build-id and the address of a frame, as the public interface has them. */
struct incstack__code {
	const char *module, *build_id; /* null: unknown */
	uint64_t address;              /* 0: unknown */
};

/* Find or add a module, a mapping or a place. The number is from 1. An unknown module is 0. */
int incstack__module_intern(struct incstack_profile *profile, const char *file,
			    const char *build_id, uint32_t *number);
int incstack__mapping_intern(struct incstack_profile *profile,
			     const struct incstack__mapping *mapping, uint32_t *number);
int incstack__place_intern(struct incstack_profile *profile, const struct incstack__place *place,
			   uint32_t *number);

/* Sets the module and the place of a frame that is to be found or added. */
int incstack__code_intern(struct incstack_profile *profile, const struct incstack__code *code,
			  struct incstack__frame *frame);
/* The same with those of a frame of another profile. */
int incstack__code_copy(const struct incstack_profile *from, const struct incstack__frame *frame,
			struct incstack_profile *into, struct incstack__frame *copy);
/* Gives out the module and the place of a frame. The strings are valid until the next name is added. */
void incstack__code_of(const struct incstack_profile *profile, const struct incstack__frame *frame,
		       struct incstack__code *code);

#endif
