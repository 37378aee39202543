/* SPDX-License-Identifier: MIT
 *
 * How stable a set of runs is: each is compared with the average of all.
 */
#include <math.h>
#include <stdlib.h>

#include "cct.h"

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Between two values where the quartile lies between them. */
static double quantile(const double *sorted, size_t count, double part)
{
	double place = part * (double)(count - 1);
	size_t below = (size_t)place;
	double above = below + 1 < count ? sorted[below + 1] : sorted[below];

	return sorted[below] + (place - (double)below) * (above - sorted[below]);
}

static struct incstack_profile_quartiles quartiles(double *values, size_t count)
{
	const double nan = (double)NAN;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i]))
			values[kept++] = values[i];
	if (!kept)
		return (struct incstack_profile_quartiles){nan, nan, nan};
	qsort(values, kept, sizeof(*values), compare_numbers);
	return (struct incstack_profile_quartiles){quantile(values, kept, 0.25),
						   quantile(values, kept, 0.5),
						   quantile(values, kept, 0.75)};
}

int incstack_profile_stability(const struct incstack_profile *const *profiles, size_t count,
			       uint32_t kind, enum incstack_profile_measure measure,
			       double threshold, struct incstack_profile_stability *stability)
{
	struct incstack_profile *average = NULL;
	double *values = stability && count ? calloc(count * 3, sizeof(*values)) : NULL;
	int error = !stability || !count ? INCSTACK_EINVAL
		    : values             ? incstack_profile_average(profiles, count, &average)
					 : INCSTACK_ENOMEM;

	for (size_t i = 0; i < count && !error; i++) {
		struct incstack_profile_difference difference;

		error = incstack_profile_compare(profiles[i], average, kind, measure, threshold,
						 &difference);
		values[i] = difference.overlap;
		values[count + i] = difference.cover_a;
		values[2 * count + i] = difference.correlation;
	}
	if (!error) {
		stability->overlap = quartiles(values, count);
		stability->cover = quartiles(values + count, count);
		stability->correlation = quartiles(values + 2 * count, count);
	}
	incstack_profile_destroy(average);
	free(values);
	return error;
}
