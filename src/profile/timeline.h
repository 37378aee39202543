/* SPDX-License-Identifier: MIT
 *
 * The timeline of a profile: when each context got its weights, by thread.
 */
#ifndef INCSTACK_PROFILE_TIMELINE_H
#define INCSTACK_PROFILE_TIMELINE_H

#include <stdint.h>

#include <incstack/profile.h>

struct incstack__timeline_thread {
	uint32_t name; /* its number in the profile */
	uint64_t id;
	size_t first; /* of its samples */
	size_t count;
};

struct incstack__timeline {
	struct incstack__timeline_thread *threads;
	size_t thread_count;
	struct incstack_profile_sample *samples; /* by thread, then by time */
	size_t sample_count;
};

/* Gives `into`, which has the node nodes[i] for node i of `from`, the timeline of `from`, if that has
 * one. */
int incstack__timeline_copy(const struct incstack_profile *from, const uint32_t *nodes,
			    struct incstack_profile *into);

/* Removes the timeline of a profile, if it has one. */
void incstack__timeline_drop(struct incstack_profile *profile);

#endif
