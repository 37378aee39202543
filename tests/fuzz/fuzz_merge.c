/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of merge: a sum weighs what its parts weigh, or it is refused.
 */

#include "two_profiles.h"
#include "profile/analysis.h"
#include "profile/reduce.h"

static void merge(struct incstack_profile **profiles)
{
	struct incstack_profile_kind kind;
	uint32_t kinds = 0;
	uint64_t sums[INCSTACK_PROFILE_KINDS_MAX];
	int error;

	for (; !incstack_profile_kind(profiles[0], kinds, &kind); kinds++)
		sums[kinds] = weight(profiles[0], kinds) + weight(profiles[1], kinds);
	error = incstack_profile_merge(profiles[0], profiles[1]);
	for (uint32_t k = 0; k < kinds && !error; k++)
		if (weight(profiles[0], k) != sums[k])
			abort();
	if (incstack__profile_prune(profiles[0], 3))
		return;
	for (uint32_t k = 0; k < kinds && !error; k++)
		if (weight(profiles[0], k) != sums[k])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct incstack_profile *profiles[2], *average = NULL;

	if (read_two(data, size, profiles)) {
		if (!incstack__profile_average(
			    (const struct incstack_profile *const *)(void *)profiles, 2,
			    &average) != !!average)
			abort();
		incstack_profile_destroy(average);
		merge(profiles);
	}
	incstack_profile_destroy(profiles[0]);
	incstack_profile_destroy(profiles[1]);
	return 0;
}
