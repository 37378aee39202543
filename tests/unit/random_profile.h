/* SPDX-License-Identifier: MIT
 *
 * Random profiles, for properties that all profiles must have.
 */
#ifndef INCSTACK_TESTS_RANDOM_PROFILE_H
#define INCSTACK_TESTS_RANDOM_PROFILE_H

#include <stdio.h>
#include <string.h>

#include <check.h>

#include <incstack/profile.h>

/* The next number of a sequence that is equal in each run. */
static inline uint32_t random_number(uint64_t *state, uint32_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33) % below;
}

/* Fills a profile with the four kinds of heap profiles with up to `nodes` contexts of the functions that are named,
 * in files a.c and b.c and at lines 0 to 3, some inlined. */
static inline struct incstack_profile *random_profile(uint64_t *state, uint32_t nodes,
						      const char *const *names, uint32_t count)
{
	static const struct incstack_profile_kind kinds[] = {{"allocated", "bytes"},
							     {"allocations", "count"},
							     {"live at peak", "bytes"},
							     {"live at exit", "bytes"}};
	struct incstack_profile *profile = NULL;

	ck_assert_int_eq(incstack_profile_create(kinds, 4, &profile), 0);
	for (uint32_t i = 0; i < nodes; i++) {
		const uint32_t parent = random_number(state, incstack_profile_nodes(profile));
		const char *name = names[random_number(state, count)];
		const struct incstack_profile_frame frame = {
			.size = sizeof(frame),
			.name = name,
			.name_length = strlen(name),
			.file = random_number(state, 2) ? "a.c" : "b.c",
			.line = (int32_t)random_number(state, 4),
			.position = -1,
			.module = random_number(state, 10) ? NULL : "/lib/libx.so",
			.flags = random_number(state, 3) ? 0 : INCSTACK_OBJECT_VIRTUAL};
		uint64_t weights[4];
		uint32_t node;

		for (int k = 0; k < 4; k++)
			weights[k] = random_number(state, 3) ? random_number(state, 1000) : 0;
		ck_assert_int_eq(incstack_profile_add_node(profile, parent, &frame, &node), 0);
		ck_assert_int_eq(incstack_profile_add_weights(profile, node, weights), 0);
	}
	return profile;
}

#endif
