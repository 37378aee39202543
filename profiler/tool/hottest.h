/* SPDX-License-Identifier: MIT
 *
 * The contexts of a profile that weigh most by themselves.
 */
#ifndef INCSTACK_TOOL_HOTTEST_H
#define INCSTACK_TOOL_HOTTEST_H

#include <incstack/profile.h>

struct tool_hottest {
	uint32_t *nodes; /* the heaviest first; the caller frees them */
	size_t count;
	uint64_t total; /* of all contexts */
};

/* Finds at most `most` of them. Returns 0 or INCSTACK_ENOMEM. */
int tool_hottest_find(const struct incstack_profile *profile, uint32_t kind, size_t most,
		      struct tool_hottest *hottest);

#endif
