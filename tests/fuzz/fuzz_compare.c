/* SPDX-License-Identifier: MIT
 *
 * The fuzzer of compare: its numbers are parts of a whole, and the same in both directions. Differences add up.
 */
#include <math.h>

#include "two_profiles.h"
#include "profile/analysis.h"
#include "profile/delta.h"

static void must_be_part(double part)
{
	if (!isnan(part) && (part < -1e-9 || part > 1 + 1e-9))
		abort();
}

static void compare(const struct incstack_profile *a, const struct incstack_profile *b,
		    enum incstack__profile_measure measure)
{
	struct incstack__profile_difference there, back;
	int error = incstack__profile_compare(a, b, 0, measure, 0.1, &there);

	if (error != incstack__profile_compare(b, a, 0, measure, 0.1, &back))
		abort();
	if (error)
		return;
	must_be_part(there.overlap);
	must_be_part(there.cover_a);
	must_be_part(there.cover_b);
	if (there.common != back.common || there.only_a != back.only_b ||
	    fabs(there.overlap - back.overlap) > 1e-9)
		abort();
}

static void must_add_up(const struct incstack__kind_delta *of,
			const struct incstack__changes *changes)
{
	uint64_t sum = of->before;

	for (size_t i = 0; i < changes->count; i++)
		sum += changes->at[i].after - changes->at[i].before;
	if (sum != of->after)
		abort();
}

static void find_differences(struct incstack_profile **profiles)
{
	struct incstack__delta *delta = NULL;
	struct incstack__kind_delta of;

	if (incstack__delta_create(profiles[0], profiles[1], &delta))
		return;
	if (!incstack__delta_weigh(delta, 0, 0, false, &of)) {
		must_add_up(&of, &of.functions);
		must_add_up(&of, &of.contexts);
		incstack__kind_delta_free(&of);
	}
	if (!incstack__delta_weigh(delta, 0, 0, true, &of))
		incstack__kind_delta_free(&of);
	incstack__delta_destroy(delta);
}

static void compare_all(struct incstack_profile **profiles)
{
	struct incstack__profile_stability stability;
	struct incstack_profile *both = NULL;

	for (unsigned measure = 0; measure < 3; measure++)
		compare(profiles[0], profiles[1], (enum incstack__profile_measure)measure);
	if (!incstack__profile_overlay(profiles[0], profiles[1], 0, &both) &&
	    (weight(both, 0) != weight(profiles[0], 0) ||
	     weight(both, 1) != weight(profiles[1], 0)))
		abort();
	incstack_profile_destroy(both);
	find_differences(profiles);
	(void)incstack__profile_stability((const struct incstack_profile *const *)(void *)profiles,
					  2, 0, INCSTACK__MEASURE_BOTH, 0.1, &stability);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct incstack_profile *profiles[2];

	if (read_two(data, size, profiles))
		compare_all(profiles);
	incstack_profile_destroy(profiles[0]);
	incstack_profile_destroy(profiles[1]);
	return 0;
}
