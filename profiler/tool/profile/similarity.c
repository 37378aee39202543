/* SPDX-License-Identifier: MIT
 *
 * Prints how similar two profiles are, or how stable a set of runs is; and makes the flame graph of a difference.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "compare.h"
#include "tool/names.h"
#include "profile/analysis.h"

static const char *number(double value, char text[16])
{
	if (isnan(value))
		strcpy(text, "n/a");
	else
		snprintf(text, 16, "%.3f", value);
	return text;
}

static void print_row(const char *what, double self, double total, double both)
{
	char a[16], b[16], c[16];

	printf("%-28s %8s %8s %8s\n", what, number(self, a), number(total, b), number(both, c));
}

static int print_numbers(const struct incstack_profile *a, const struct incstack_profile *b,
			 uint32_t kind, double threshold)
{
	struct incstack__profile_difference d[3];

	for (unsigned m = 0; m < 3; m++) {
		int error = incstack__profile_compare(a, b, kind, (enum incstack__profile_measure)m,
						      threshold, &d[m]);

		if (error)
			return error;
	}
	printf("%-28s %8s %8s %8s\n", "", "nodes", "edges", "both");
	print_row("degree of overlap", d[0].overlap, d[1].overlap, d[2].overlap);
	print_row("hot-edge coverage, A over B", d[0].cover_a, d[1].cover_a, d[2].cover_a);
	print_row("hot-edge coverage, B over A", d[0].cover_b, d[1].cover_b, d[2].cover_b);
	print_row("correlation", d[0].correlation, d[1].correlation, d[2].correlation);
	printf("\ncontexts with weight in both: %" PRIu64 ", only in A: %" PRIu64
	       ", only in B: %" PRIu64 "\n",
	       d[0].common, d[0].only_a, d[0].only_b);
	return 0;
}

static int write_difference(const struct incstack_profile *both, bool shares, const char *path)
{
	FILE *stream = tool_output_open(path);

	return stream ? tool_output_close(path, stream,
					  incstack__profile_write_difference(both, shares, stream))
		      : TOOL_FAILED;
}

static int failed(int error)
{
	fprintf(stderr, "incstack: cannot compare: %s\n",
		error == INCSTACK_EINVAL ? "the profiles have different kinds of weight"
					 : incstack_error_text(error));
	return TOOL_FAILED;
}

static void print_quartiles(const char *what, struct incstack__profile_quartiles q)
{
	print_row(what, q.low, q.median, q.high);
}

static int compare_runs(struct incstack_profile **profiles, size_t count, uint32_t kind,
			double threshold)
{
	struct incstack__profile_stability s;
	int error = incstack__profile_stability(
		(const struct incstack_profile *const *)(void *)profiles, count, kind,
		INCSTACK__MEASURE_BOTH, threshold, &s);

	if (error)
		return failed(error);
	printf("%zu runs, each against their average, nodes and edges\n", count);
	printf("%-28s %8s %8s %8s\n", "", "low", "median", "high");
	print_quartiles("degree of overlap", s.overlap);
	print_quartiles("hot-edge coverage", s.cover);
	print_quartiles("correlation", s.correlation);
	return TOOL_DONE;
}

/* Returns the kind with this name, or the first one if there is none. */
static uint32_t kind_like(const struct incstack_profile *profile, const char *name)
{
	struct incstack_profile_kind known;

	for (uint32_t kind = 0; !incstack_profile_kind(profile, kind, &known); kind++)
		if (!strcmp(known.name, name))
			return kind;
	return 0;
}

/* Reduces each profile to the kind that is compared: the one that the user names; otherwise the
 * first kind of the first profile, and of the others the one with the same name, or else the
 * first. Units must be equal. */
static int select_kinds(struct incstack_profile **profiles, size_t count, const char *name)
{
	struct incstack_profile_kind first = {"", ""}, own;

	for (size_t i = 0; i < count; i++) {
		struct incstack_profile *one = NULL;
		uint32_t kind = 0;
		int error;

		if (name && tool_kind_find(profiles[i], name, &kind))
			return TOOL_USAGE;
		if (!name && i)
			kind = kind_like(profiles[i], first.name);
		(void)incstack_profile_kind(profiles[i], kind, &own);
		if (i && strcmp(first.unit, own.unit) != 0) {
			fprintf(stderr,
				"incstack: cannot compare '%s' (%s) with '%s' (%s); --kind names a "
				"kind that all profiles have\n",
				tool_name(first.name), tool_name(first.unit), tool_name(own.name),
				tool_name(own.unit));
			return TOOL_USAGE;
		}
		error = incstack__profile_select(profiles[i], kind, i ? &first : NULL, &one);
		if (error)
			return failed(error);
		incstack_profile_destroy(profiles[i]);
		profiles[i] = one;
		(void)incstack_profile_kind(profiles[0], 0, &first);
	}
	return TOOL_DONE;
}

int tool_difference_page(struct incstack_profile **profiles, const struct tool_options *options)
{
	struct incstack_profile *both = NULL;
	int status = select_kinds(profiles, 2, options->kind), error;

	if (status)
		return status;
	error = incstack__profile_overlay(profiles[0], profiles[1], 0, &both);
	if (!error)
		status = write_difference(both, options->normalize, options->output);
	incstack_profile_destroy(both);
	return error ? failed(error) : status;
}

int tool_similarity_print(struct incstack_profile **profiles, size_t count,
			  const struct tool_options *options)
{
	const int status = select_kinds(profiles, count, options->kind);
	int error;

	if (status)
		return status;
	if (count > 2)
		return compare_runs(profiles, count, 0, options->hot);
	error = print_numbers(profiles[0], profiles[1], 0, options->hot);
	return error ? failed(error) : TOOL_DONE;
}
