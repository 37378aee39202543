/* SPDX-License-Identifier: MIT
 *
 * Compares two profiles. Both become one tree with two kinds of weight. Each measure is one
 * pass over its nodes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "merge.h"
#include "wide.h"
#include "analysis.h"

static int overlay(struct incstack_profile *both, const struct incstack_profile *from,
		   uint32_t kind, uint32_t side)
{
	uint32_t *map;
	int error = incstack__map(both, from, INCSTACK__SITES_IGNORED, &map);

	for (uint32_t i = 0; i < from->nodes_used && !error; i++)
		error = incstack__node_weigh(both, map[i], side,
					     incstack__profile_self(from, i, kind));
	free(map);
	return error;
}

size_t incstack__edge_count(const struct incstack_profile *tree,
			    enum incstack__profile_measure measure)
{
	return tree->nodes_used * (measure == INCSTACK__MEASURE_BOTH ? 2 : 1);
}

/* For BOTH, the weights of the nodes come first, then those of the edges. */
void incstack__edge_weights(const struct incstack_profile *tree,
			    enum incstack__profile_measure measure, uint64_t *weights)
{
	size_t nodes = tree->nodes_used;
	uint64_t *totals = weights;

	if (measure == INCSTACK__MEASURE_BOTH) {
		totals += nodes;
		memcpy(totals, weights, nodes * sizeof(*weights));
	}
	for (size_t i = nodes - 1; i > 0 && measure != INCSTACK__MEASURE_SELF; i--)
		totals[tree->nodes[i].parent] += totals[i];
	weights[0] = 0;
	totals[0] = 0;
}

/* Sums of one side, over the edges that have a weight on either side. */
struct side {
	struct incstack__wide sum, least, most;
};

static struct incstack__wide weight_a(const struct incstack__pair *pair, size_t edge)
{
	return incstack__wide_load(&pair->a[edge], 1);
}

static struct incstack__wide weight_b(const struct incstack__pair *pair, size_t edge)
{
	return incstack__wide_load(&pair->b[edge * pair->words], pair->words);
}

static bool has_b(const struct incstack__pair *pair, size_t edge)
{
	uint64_t any = 0;

	for (size_t i = 0; i < pair->words; i++)
		any |= pair->b[edge * pair->words + i];
	return any != 0;
}

static void add(struct side *side, struct incstack__wide weight, bool is_first)
{
	incstack__wide_add(&side->sum, &weight);
	if (is_first || incstack__wide_compare(&weight, &side->least) < 0)
		side->least = weight;
	if (is_first || incstack__wide_compare(&weight, &side->most) > 0)
		side->most = weight;
}

/* Sums up both sides. Returns how many edges have a weight. */
static size_t sum_up(const struct incstack__pair *pair, struct side *side_a, struct side *side_b,
		     struct incstack__profile_difference *difference)
{
	size_t count = 0;

	*side_a = *side_b = (struct side){0};
	for (size_t i = 0; i < pair->edges; i++) {
		const bool a = pair->a[i] != 0, b = has_b(pair, i);

		if (!a && !b)
			continue;
		add(side_a, weight_a(pair, i), count == 0);
		add(side_b, weight_b(pair, i), count == 0);
		difference->common += a && b;
		difference->only_a += !b;
		difference->only_b += !a;
		count++;
	}
	return count;
}

static double overlap(const struct incstack__pair *pair, const struct side *side_a,
		      const struct side *side_b)
{
	const long double sum_a = incstack__wide_value(&side_a->sum);
	const long double sum_b = incstack__wide_value(&side_b->sum);
	long double sum = 0;

	for (size_t i = 0; i < pair->edges; i++) {
		const struct incstack__wide b = weight_b(pair, i);

		if (pair->a[i] && has_b(pair, i))
			sum += fminl((long double)pair->a[i] / sum_a,
				     incstack__wide_value(&b) / sum_b);
	}
	return (double)sum;
}

/* A double has no exact value for a threshold such as 0.1, but an edge of exactly a tenth must
 * be hot. So the threshold is taken as a decimal number with 15 places. */
#define PLACES UINT64_C(1000000000000000)

static bool hot(struct incstack__wide weight, const struct incstack__wide *least)
{
	weight = incstack__wide_times(weight, PLACES);
	return incstack__wide_compare(&weight, least) >= 0;
}

static void cover(const struct incstack__pair *pair, const struct side *side_a,
		  const struct side *side_b, double threshold,
		  struct incstack__profile_difference *difference)
{
	const uint64_t part = (uint64_t)llround(threshold * (double)PLACES);
	const struct incstack__wide least_a = incstack__wide_times(side_a->most, part);
	const struct incstack__wide least_b = incstack__wide_times(side_b->most, part);
	double both = 0, hot_a = 0, hot_b = 0;

	for (size_t i = 0; i < pair->edges; i++) {
		bool a = pair->a[i] != 0 && hot(weight_a(pair, i), &least_a);
		bool b = has_b(pair, i) && hot(weight_b(pair, i), &least_b);

		both += a && b;
		hot_a += a;
		hot_b += b;
	}
	difference->cover_a = hot_b > 0 ? both / hot_b : (double)NAN;
	difference->cover_b = hot_a > 0 ? both / hot_a : (double)NAN;
}

/* Returns the distance of a weight from the mean, times the number of weights. */
static long double deviation(struct incstack__wide weight, const struct side *side, size_t count)
{
	weight = incstack__wide_times(weight, count);
	return incstack__wide_difference(&weight, &side->sum);
}

static double pearson(const struct incstack__pair *pair, const struct side *side_a,
		      const struct side *side_b, size_t count)
{
	long double aa = 0, bb = 0, ab = 0;

	for (size_t i = 0; i < pair->edges; i++) {
		if (!pair->a[i] && !has_b(pair, i))
			continue;
		const long double a = deviation(weight_a(pair, i), side_a, count);
		const long double b = deviation(weight_b(pair, i), side_b, count);
		aa += a * a;
		bb += b * b;
		ab += a * b;
	}
	return (double)fmaxl(-1, fminl(1, ab / (sqrtl(aa) * sqrtl(bb))));
}

static bool is_empty(const struct side *side)
{
	return incstack__wide_value(&side->sum) == 0;
}

static bool is_flat(const struct side *side, uint64_t blur)
{
	return incstack__wide_difference(&side->most, &side->least) <= (long double)blur;
}

/* Returns Pearson's correlation. The test for a flat side uses integers, because rounding would
 * leave a small variance. */
static double correlation(const struct incstack__pair *pair, const struct side *side_a,
			  const struct side *side_b, size_t count)
{
	const bool flat_a = is_flat(side_a, 0), flat_b = is_flat(side_b, pair->blur);

	if (!flat_a && !flat_b)
		return pearson(pair, side_a, side_b, count);
	/* If both sides are flat and not empty, both are 1/n everywhere. */
	return flat_a && flat_b && !is_empty(side_a) && !is_empty(side_b) ? 1 : (double)NAN;
}

void incstack__measure(const struct incstack__pair *pair, double threshold,
		       struct incstack__profile_difference *difference)
{
	struct side a, b;
	size_t count;

	*difference = (struct incstack__profile_difference){0};
	count = sum_up(pair, &a, &b, difference);
	if (count == 0) {
		difference->overlap = 1;
		difference->cover_a = 1;
		difference->cover_b = 1;
		difference->correlation = 1;
		return;
	}
	difference->overlap = overlap(pair, &a, &b);
	cover(pair, &a, &b, threshold, difference);
	difference->correlation = correlation(pair, &a, &b, count);
}

static void weigh(const struct incstack_profile *both, uint32_t side,
		  enum incstack__profile_measure measure, uint64_t *weights)
{
	for (uint32_t i = 0; i < both->nodes_used; i++)
		weights[i] = incstack__profile_self(both, i, side);
	incstack__edge_weights(both, measure, weights);
}

static int compare_overlaid(const struct incstack_profile *both,
			    enum incstack__profile_measure measure, double threshold,
			    struct incstack__profile_difference *difference)
{
	const size_t edges = incstack__edge_count(both, measure);
	uint64_t *weights = calloc(edges * 2, sizeof(*weights));
	const struct incstack__pair pair = {weights, weights + edges, edges, 1, 0};

	if (!weights)
		return INCSTACK_ENOMEM;
	weigh(both, 0, measure, weights);
	weigh(both, 1, measure, weights + edges);
	incstack__measure(&pair, threshold, difference);
	free(weights);
	return 0;
}

int incstack__profile_overlay(const struct incstack_profile *a, const struct incstack_profile *b,
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

int incstack__profile_compare(const struct incstack_profile *a, const struct incstack_profile *b,
			      uint32_t kind, enum incstack__profile_measure measure,
			      double threshold, struct incstack__profile_difference *difference)
{
	struct incstack_profile *both = NULL;
	int error;

	if (!difference || !(threshold >= 0 && threshold <= 1) ||
	    (unsigned)measure > INCSTACK__MEASURE_BOTH)
		return INCSTACK_EINVAL;
	error = incstack__profile_overlay(a, b, kind, &both);
	if (error)
		return error;
	error = compare_overlaid(both, measure, threshold, difference);
	incstack_profile_destroy(both);
	return error;
}
