/* SPDX-License-Identifier: MIT
 *
 * The two answers of incstack compare, for profiles that were read.
 */
#ifndef INCSTACK_TOOL_PROFILE_COMPARE_H
#define INCSTACK_TOOL_PROFILE_COMPARE_H

#include <incstack/profile.h>

#include "tool/profile_io.h"

/* A limit of --fail-if was exceeded. */
enum { TOOL_EXCEEDED = 3 };

/* difference.c: prints what grew and what shrank, in the units of the weights, of each kind that both profiles
 * have. paths[] are the names of the profiles. Returns an exit status. */
int tool_difference_print(struct incstack_profile **profiles, char *const *paths,
			  const struct tool_options *options);
/* similarity.c: prints how similar two profiles are, or how stable more of them, by one kind. */
int tool_similarity_print(struct incstack_profile **profiles, size_t count,
			  const struct tool_options *options);
/* Makes the flame graph of the difference in one kind, where options->output says. Reduces both
 * profiles to this kind. */
int tool_difference_page(struct incstack_profile **profiles, const struct tool_options *options);

/* limits.c: whether the kind has a limit, and whether it grew by more: -1, 0 or 1; a message tells the
 * latter. */
int tool_limits_check(const struct tool_options *options, const struct incstack_profile_kind *kind,
		      uint64_t before, uint64_t after);
/* Refuses limits of kinds that are not compared, or whose unit has no such amounts. Returns an exit status. */
int tool_limits_refuse(const struct tool_options *options,
		       const struct incstack_profile_kind *kinds, size_t count);

#endif
