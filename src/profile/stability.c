/* SPDX-License-Identifier: MIT
 *
 * Computes how stable a set of runs is: compares each with the average of all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "merge.h"
#include "wide.h"
#include "analysis.h"

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns a quantile, interpolated if it lies between two values. */
static double quantile(const double *sorted, size_t count, double part)
{
	double place = part * (double)(count - 1);
	size_t below = (size_t)place;
	double above = below + 1 < count ? sorted[below + 1] : sorted[below];

	return sorted[below] + (place - (double)below) * (above - sorted[below]);
}

static struct incstack__profile_quartiles quartiles(double *values, size_t count)
{
	const double nan = (double)NAN;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i]))
			values[kept++] = values[i];
	if (!kept)
		return (struct incstack__profile_quartiles){nan, nan, nan};
	qsort(values, kept, sizeof(*values), compare_numbers);
	return (struct incstack__profile_quartiles){quantile(values, kept, 0.25),
						    quantile(values, kept, 0.5),
						    quantile(values, kept, 0.75)};
}

/* The runs, and one tree that has the contexts of all of them. */
struct runs {
	const struct incstack_profile *const *profiles;
	size_t count;
	uint32_t kind;
	enum incstack__profile_measure measure;
	struct incstack_profile *tree;
	uint32_t **nodes; /* nodes of the tree, by run and by the run's own node */
	size_t edges;
	uint64_t *weights; /* of one run */
	/* The sum to which the weights of each run are scaled. */
	struct incstack__wide common;
	uint64_t *average; /* multiplied by count and by the common total */
	size_t words;      /* of the average of an edge */
	uint64_t blur;
};

static size_t words_of(struct incstack__wide wide)
{
	size_t words = INCSTACK__WIDE_WORDS;

	while (words > 1 && wide.word[words - 1] == 0)
		words--;
	return words;
}

/* Chooses the common total: the least common multiple of the totals, which keeps every weight
 * exact. If that is too large, weights are rounded, each by at most a half. */
static void find_common_total(struct runs *runs)
{
	struct incstack__wide most = {{0}};

	runs->common = (struct incstack__wide){{1}};
	for (size_t i = 0; i < runs->count; i++) {
		const uint64_t total = runs->profiles[i]->total[runs->kind];
		struct incstack__wide quotient = runs->common;

		if (total)
			runs->common = incstack__wide_times(
				runs->common,
				total / incstack__greatest_divisor(
						total, incstack__wide_divide(&quotient, total)));
		runs->words = words_of(incstack__wide_times(runs->common, runs->count));
		if (runs->words <= INCSTACK__WIDE_STORED)
			continue;
		memset(most.word, 0xff, INCSTACK__WIDE_STORED * sizeof(*most.word));
		(void)incstack__wide_divide(&most, 2 * runs->count); /* half, because of rounding */
		runs->common = most;
		runs->words = INCSTACK__WIDE_STORED;
		runs->blur = runs->count;
		return;
	}
}

static int lay_over(struct runs *runs)
{
	const struct incstack_profile_kind any = {"any", ""};
	int error = incstack_profile_create(&any, 1, &runs->tree);

	find_common_total(runs);
	runs->nodes = calloc(runs->count, sizeof(*runs->nodes));
	if (!error && !runs->nodes)
		error = INCSTACK_ENOMEM;
	for (size_t i = 0; i < runs->count && !error; i++)
		error = incstack__map(runs->tree, runs->profiles[i], INCSTACK__SITES_IGNORED,
				      &runs->nodes[i]);
	if (error)
		return error;
	runs->edges = incstack__edge_count(runs->tree, runs->measure);
	runs->weights = malloc(runs->edges * sizeof(*runs->weights));
	runs->average = calloc(runs->edges * runs->words, sizeof(*runs->average));
	return runs->weights && runs->average ? 0 : INCSTACK_ENOMEM;
}

static void clear(struct runs *runs)
{
	for (size_t i = 0; runs->nodes && i < runs->count; i++)
		free(runs->nodes[i]);
	free(runs->nodes);
	free(runs->weights);
	free(runs->average);
	incstack_profile_destroy(runs->tree);
}

static void weigh(struct runs *runs, size_t run)
{
	const struct incstack_profile *from = runs->profiles[run];

	memset(runs->weights, 0, runs->edges * sizeof(*runs->weights));
	for (uint32_t i = 0; i < from->nodes_used; i++)
		runs->weights[runs->nodes[run][i]] += incstack__profile_self(from, i, runs->kind);
	incstack__edge_weights(runs->tree, runs->measure, runs->weights);
}

static void put_average(struct runs *runs, size_t edge, const struct incstack__wide *weight)
{
	memcpy(&runs->average[edge * runs->words], weight->word,
	       runs->words * sizeof(*runs->average));
}

/* Adds a run whose weights have this total. They are scaled exactly or rounded to the nearest
 * integer. */
static void add_to_average(struct runs *runs, uint64_t total)
{
	struct incstack__wide factor = runs->common;
	const uint64_t rest = incstack__wide_divide(&factor, total);

	for (size_t i = 0; i < runs->edges; i++) {
		const unsigned __int128 part = (unsigned __int128)runs->weights[i] * rest;
		const uint64_t rounded = (uint64_t)((part + total / 2) / total);
		struct incstack__wide sum =
			incstack__wide_load(&runs->average[i * runs->words], runs->words);
		const struct incstack__wide whole = incstack__wide_times(factor, runs->weights[i]);
		const struct incstack__wide less = incstack__wide_load(&rounded, 1);

		incstack__wide_add(&sum, &whole);
		incstack__wide_add(&sum, &less);
		put_average(runs, i, &sum);
	}
}

static void make_average(struct runs *runs)
{
	for (size_t run = 0; run < runs->count; run++) {
		const uint64_t total = runs->profiles[run]->total[runs->kind];

		if (!total)
			continue;
		weigh(runs, run);
		add_to_average(runs, total);
	}
}

static void compare_each(struct runs *runs, double threshold, double *values)
{
	const size_t count = runs->count;
	const struct incstack__pair pair = {runs->weights, runs->average, runs->edges, runs->words,
					    runs->blur};

	for (size_t i = 0; i < count; i++) {
		struct incstack__profile_difference difference;

		weigh(runs, i);
		incstack__measure(&pair, threshold, &difference);
		values[i] = difference.overlap;
		values[count + i] = difference.cover_a;
		values[2 * count + i] = difference.correlation;
	}
}

int incstack__profile_stability(const struct incstack_profile *const *profiles, size_t count,
				uint32_t kind, enum incstack__profile_measure measure,
				double threshold, struct incstack__profile_stability *stability)
{
	struct runs runs = {.profiles = profiles, .count = count, .kind = kind, .measure = measure};
	double *values;
	int error;

	if (!stability || !profiles || !count || !incstack__kinds_alike(profiles, count) ||
	    kind >= profiles[0]->kinds || !(threshold >= 0 && threshold <= 1) ||
	    (unsigned)measure > INCSTACK__MEASURE_BOTH)
		return INCSTACK_EINVAL;
	values = calloc(count * 3, sizeof(*values));
	error = values ? lay_over(&runs) : INCSTACK_ENOMEM;
	if (!error) {
		make_average(&runs);
		compare_each(&runs, threshold, values);
		stability->overlap = quartiles(values, count);
		stability->cover = quartiles(values + count, count);
		stability->correlation = quartiles(values + 2 * count, count);
	}
	clear(&runs);
	free(values);
	return error;
}
