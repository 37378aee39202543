/* SPDX-License-Identifier: MIT
 *
 * Shared by the fuzzers of what is done with two profiles. The first byte chooses their format, and the next two
 * say where the second one begins.
 */
#ifndef INCSTACK_TESTS_FUZZ_TWO_PROFILES_H
#define INCSTACK_TESTS_FUZZ_TWO_PROFILES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <incstack/profile.h>

#include "profile/nodes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct incstack_profile *read_one(const void *data, size_t size,
					 enum incstack_profile_format format)
{
	struct incstack_profile *profile = NULL;
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	FILE *stream = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;

	if (!stream)
		return NULL;
	(void)incstack_profile_read(stream, format, 0, &profile, &problem);
	fclose(stream);
	return profile;
}

/* Reads both. Returns false if one of them is no profile. */
static bool read_two(const uint8_t *data, size_t size, struct incstack_profile **profiles)
{
	static const enum incstack_profile_format formats[] = {
		INCSTACK_FORMAT_FOLDED, INCSTACK_FORMAT_PPROF, INCSTACK_FORMAT_SPEEDSCOPE,
		INCSTACK_FORMAT_FIREFOX};
	size_t first;

	profiles[0] = profiles[1] = NULL;
	if (size < 4)
		return false;
	first = ((size_t)data[1] << 8 | data[2]) % (size - 3);
	profiles[0] = read_one(data + 3, first, formats[data[0] % 4]);
	profiles[1] = read_one(data + 3 + first, size - 3 - first, formats[data[0] % 4]);
	return profiles[0] && profiles[1];
}

/* The weight of one kind in all nodes. The sum of valid weights fits. */
static uint64_t weight(const struct incstack_profile *profile, uint32_t kind)
{
	uint64_t sum = 0;

	for (uint32_t node = 0; node < incstack_profile_nodes(profile); node++)
		sum += incstack__profile_self(profile, node, kind);
	return sum;
}

#endif
