/* SPDX-License-Identifier: MIT
 *
 * Makes the same run twice, with return barriers and in another mode (usually full walks at every
 * sample). Checks that both yield the same profile, and prints what each costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <incstack/profile.h>

#include "vm.h"
#include "profile/analysis.h"
#include "profile/nodes.h"

/* The lowest agreement of all programs, for the totals of edges and for the nodes' own weights. */
static struct {
	double overlap, cover, correlation;
	uint64_t programs, identical, weight[2];
	double seconds[2];
} seen = {.overlap = 1, .cover = 1, .correlation = 1};
static const double hot = 0.1; /* share of the heaviest edge, as in `incstack compare` */

static double seconds(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static struct incstack_profile *run(struct program *p, const struct schedule *s, int which,
				    int mode, uint64_t seed, int64_t n)
{
	static const struct incstack_profile_kind kind = {"samples", "count"};
	struct schedule one = *s;
	double start = seconds();
	if (incstack_profile_create(&kind, 1, &one.profile))
		abort();
	one.mode = mode;
	one.lazily = true;
	one.silent_exits = false;
	one.stack_bytes = 0;
	one.arms = 0; /* a refusal takes a random number, and only mode patch asks for barriers */
	vm_run(p, &one, seed, n, false);
	seen.seconds[which] += seconds() - start;
	return one.profile;
}

static void least(double *to, double n)
{
	if (!(n >= *to)) /* a NAN, too */
		*to = n;
}

static void compare(const struct incstack_profile *a, const struct incstack_profile *b)
{
	static const enum incstack__profile_measure measures[] = {INCSTACK__MEASURE_SELF,
								  INCSTACK__MEASURE_TOTAL};
	bool identical = true;
	for (int i = 0; i < 2; i++) {
		struct incstack__profile_difference d;
		if (incstack__profile_compare(a, b, 0, measures[i], hot, &d))
			abort();
		least(&seen.overlap, d.overlap);
		least(&seen.cover, d.cover_a);
		least(&seen.cover, d.cover_b);
		least(&seen.correlation, d.correlation);
		identical &= !d.only_a && !d.only_b && d.overlap > 1 - 1e-9;
	}
	seen.programs++;
	seen.identical += identical;
}

static uint64_t weight(const struct incstack_profile *profile)
{
	uint64_t sum = 0;
	for (uint32_t i = incstack_profile_nodes(profile); i-- > 0;)
		sum += incstack__profile_self(profile, i, 0);
	return sum;
}

void modes_run(struct program *p, const struct schedule *s, int mode, uint64_t seed, int64_t n)
{
	const int modes[2] = {INCSTACK_MODE_PATCH, mode};
	struct incstack_profile *profiles[2];
	for (int i = 0; i < 2; i++) {
		int which =
			i ^ (int)(seen.programs &
				  1); /* they take turns, because the first one has cold caches */
		profiles[which] = run(p, s, which, modes[which], seed, n);
	}
	compare(profiles[0], profiles[1]);
	for (int i = 0; i < 2; i++) {
		seen.weight[i] += weight(profiles[i]);
		incstack_profile_destroy(profiles[i]);
	}
}

bool modes_print(void)
{
	printf("comparison: programs=%llu identical=%llu samples=%llu:%llu "
	       "overlap=%.6f cover=%.6f pearson=%.6f seconds=%.2f:%.2f ratio=%.2f\n",
	       (unsigned long long)seen.programs, (unsigned long long)seen.identical,
	       (unsigned long long)seen.weight[0], (unsigned long long)seen.weight[1], seen.overlap,
	       seen.cover, seen.correlation, seen.seconds[0], seen.seconds[1],
	       seen.seconds[1] / seen.seconds[0]);
	return seen.identical == seen.programs && seen.weight[0] == seen.weight[1];
}
