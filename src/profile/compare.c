/* SPDX-License-Identifier: MIT
 *
 * How alike two profiles are. Both are laid over one tree, side by side as two
 * kinds of weight; each measure is then one pass over its nodes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"

struct pair {
	const uint64_t *a, *b; /* by node; the root is no edge and not looked at */
	size_t nodes;
	unsigned __int128 sum_a, sum_b;
	uint64_t hottest_a, hottest_b;
};

static int overlay(struct incstack_profile *both, const struct incstack_profile *from,
		   uint32_t kind, uint32_t side)
{
	uint32_t *map;
	int error = incstack__map(both, from, INCSTACK__SITES_IGNORED, &map);

	for (uint32_t i = 0; i < from->nodes_used && !error; i++)
		error = incstack__node_weigh(both, map[i], side,
					     incstack_profile_self(from, i, kind));
	free(map);
	return error;
}

/* The weights of one side; BOTH has those of the nodes and then those of the edges.
 * The root is no edge. */
static void edge_weights(const struct incstack_profile *both, uint32_t side,
			 enum incstack_profile_measure measure, uint64_t *weights)
{
	size_t nodes = both->nodes_used;

	if (measure != INCSTACK_MEASURE_TOTAL) {
		for (uint32_t i = 0; i < nodes; i++)
			weights[i] = incstack_profile_self(both, i, side);
		weights[0] = 0;
		weights += nodes;
	}
	if (measure != INCSTACK_MEASURE_SELF) {
		(void)incstack_profile_totals(both, side, weights);
		weights[0] = 0;
	}
}

static void sum_up(struct pair *pair, struct incstack_profile_difference *difference)
{
	for (size_t i = 1; i < pair->nodes; i++) {
		uint64_t a = pair->a[i], b = pair->b[i];

		pair->sum_a += a;
		pair->sum_b += b;
		pair->hottest_a = a > pair->hottest_a ? a : pair->hottest_a;
		pair->hottest_b = b > pair->hottest_b ? b : pair->hottest_b;
		difference->common += a && b;
		difference->only_a += a && !b;
		difference->only_b += b && !a;
	}
}

static double overlap(const struct pair *pair)
{
	long double sum = 0, sum_a = (long double)pair->sum_a, sum_b = (long double)pair->sum_b;

	for (size_t i = 1; i < pair->nodes; i++)
		if (pair->a[i] && pair->b[i])
			sum += fminl((long double)pair->a[i] / sum_a,
				     (long double)pair->b[i] / sum_b);
	return (double)sum;
}

/* A threshold such as 0.1 has no exact value, and an edge that weighs exactly a tenth must
 * not fall out: so the threshold is taken as a decimal number of 15 places. */
static bool hot(uint64_t weight, uint64_t hottest, double threshold)
{
	const uint64_t places = UINT64_C(1000000000000000);
	uint64_t part = (uint64_t)llround(threshold * (double)places);

	return weight && (unsigned __int128)weight * places >= (unsigned __int128)part * hottest;
}

static void cover(const struct pair *pair, double threshold,
		  struct incstack_profile_difference *difference)
{
	double both = 0, hot_a = 0, hot_b = 0;

	for (size_t i = 1; i < pair->nodes; i++) {
		bool a = hot(pair->a[i], pair->hottest_a, threshold);
		bool b = hot(pair->b[i], pair->hottest_b, threshold);

		both += a && b;
		hot_a += a;
		hot_b += b;
	}
	difference->cover_a = hot_b > 0 ? both / hot_b : (double)NAN;
	difference->cover_b = hot_a > 0 ? both / hot_a : (double)NAN;
}

/* Whether all nodes that weigh anything weigh the same on this side: asked of the
 * integers, since rounding would leave a little variance. */
static bool constant(const struct pair *pair, const uint64_t *side)
{
	size_t first = 0;

	for (size_t i = 1; i < pair->nodes; i++) {
		if (!pair->a[i] && !pair->b[i])
			continue;
		if (first && side[i] != side[first])
			return false;
		first = first ? first : i;
	}
	return true;
}

/* How far a weight lies from the mean, times the number of weights. The difference is
 * taken of integers, so that no large numbers cancel. */
static long double deviation(uint64_t weight, unsigned __int128 sum, size_t count)
{
	unsigned __int128 scaled = (unsigned __int128)weight * count;

	return scaled < sum ? -(long double)(sum - scaled) : (long double)(scaled - sum);
}

static double pearson(const struct pair *pair, size_t count)
{
	long double aa = 0, bb = 0, ab = 0;

	for (size_t i = 1; i < pair->nodes; i++) {
		long double a = deviation(pair->a[i], pair->sum_a, count);
		long double b = deviation(pair->b[i], pair->sum_b, count);

		if (!pair->a[i] && !pair->b[i])
			continue;
		aa += a * a;
		bb += b * b;
		ab += a * b;
	}
	return (double)fmaxl(-1, fminl(1, ab / (sqrtl(aa) * sqrtl(bb))));
}

static double correlation(const struct pair *pair, size_t count)
{
	bool flat_a = constant(pair, pair->a), flat_b = constant(pair, pair->b);

	if (!flat_a && !flat_b)
		return pearson(pair, count);
	/* Flat on both sides and empty on neither, both say 1/n everywhere. */
	return flat_a && flat_b && pair->sum_a > 0 && pair->sum_b > 0 ? 1 : (double)NAN;
}

static void measure_pair(struct pair *pair, double threshold,
			 struct incstack_profile_difference *difference)
{
	*difference = (struct incstack_profile_difference){0};
	sum_up(pair, difference);
	if (!pair->hottest_a && !pair->hottest_b) {
		difference->overlap = 1;
		difference->cover_a = 1;
		difference->cover_b = 1;
		difference->correlation = 1;
		return;
	}
	difference->overlap = overlap(pair);
	cover(pair, threshold, difference);
	difference->correlation =
		correlation(pair, difference->common + difference->only_a + difference->only_b);
}

static int compare_overlaid(const struct incstack_profile *both,
			    enum incstack_profile_measure measure, double threshold,
			    struct incstack_profile_difference *difference)
{
	size_t count = both->nodes_used * (measure == INCSTACK_MEASURE_BOTH ? 2 : 1);
	uint64_t *weights = calloc(count * 2, sizeof(*weights));
	struct pair pair = {.nodes = count};

	if (!weights)
		return INCSTACK_ENOMEM;
	edge_weights(both, 0, measure, weights);
	edge_weights(both, 1, measure, weights + count);
	pair.a = weights;
	pair.b = weights + count;
	measure_pair(&pair, threshold, difference);
	free(weights);
	return 0;
}

int incstack_profile_overlay(const struct incstack_profile *a, const struct incstack_profile *b,
			     uint32_t kind, struct incstack_profile **both)
{
	struct incstack_profile_kind sides[] = {{"a", ""}, {"b", ""}};
	struct incstack_profile *made = NULL;
	int error;

	if (!a || !b || !both || kind >= a->kinds || kind >= b->kinds)
		return INCSTACK_EINVAL;
	sides[0].unit = incstack__text(a, a->kind_unit[kind]);
	sides[1].unit = incstack__text(b, b->kind_unit[kind]);
	if (strcmp(sides[0].unit, sides[1].unit) != 0)
		return INCSTACK_EINVAL;
	error = incstack_profile_create(sides, 2, &made);
	if (!error)
		error = overlay(made, a, kind, 0);
	if (!error)
		error = overlay(made, b, kind, 1);
	if (error)
		incstack_profile_destroy(made);
	else
		*both = made;
	return error;
}

int incstack_profile_compare(const struct incstack_profile *a, const struct incstack_profile *b,
			     uint32_t kind, enum incstack_profile_measure measure, double threshold,
			     struct incstack_profile_difference *difference)
{
	struct incstack_profile *both = NULL;
	int error;

	if (!difference || !(threshold >= 0 && threshold <= 1) ||
	    (unsigned)measure > INCSTACK_MEASURE_BOTH)
		return INCSTACK_EINVAL;
	error = incstack_profile_overlay(a, b, kind, &both);
	if (error)
		return error;
	error = compare_overlaid(both, measure, threshold, difference);
	incstack_profile_destroy(both);
	return error;
}
