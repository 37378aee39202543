/* SPDX-License-Identifier: MIT
 *
 * Which functions and lines own the weights of a profile.
 */
#ifndef INCSTACK_TOOL_PLACES_H
#define INCSTACK_TOOL_PLACES_H

#include <stdbool.h>

#include <incstack/profile.h>

/* A function, or a line of a function if lines are known. */
struct tool_place {
	const char *name; /* not null-terminated */
	size_t name_length;
	const char *file; /* null: unknown */
	int32_t line;     /* 0: unknown */
	uint64_t own[INCSTACK_PROFILE_KINDS_MAX];
};

struct tool_places {
	struct tool_place *all; /* valid as long as the profile does not change */
	size_t count;
};

/* Sums the weights by line. With `by_own_source`, a weight counts at the line of the innermost caller whose source
 * is not a library's, as a line of a library's header says little. The caller frees places->all. Returns 0 or
 * INCSTACK_ENOMEM. */
int tool_places_find(const struct incstack_profile *profile, bool by_own_source,
		     struct tool_places *places);
/* Orders them by a kind of weight, the heaviest first. */
void tool_places_sort(struct tool_places *places, uint32_t kind);

#endif
