/* SPDX-License-Identifier: MIT
 *
 * The limit of outputs that repeat all callers of each context.
 */
#ifndef INCSTACK_TOOL_PROFILE_EXPANSION_H
#define INCSTACK_TOOL_PROFILE_EXPANSION_H

#include <incstack/profile.h>

/* Returns how large an output may be: as wanted, if that is above 0, or by the size of the inputs. */
double tool_output_most(char *const *inputs, size_t count, double wanted);
/* Takes the size that the profile will have in the format from *left. If that does not suffice, it prints a
 * message and returns TOOL_FAILED. */
int tool_output_fits(const struct incstack_profile *profile, const char *path, int format,
		     double *left);

#endif
