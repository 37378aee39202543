/* SPDX-License-Identifier: MIT
 *
 * incstack compare: computes how similar two profiles are and where they differ most, or how stable
 * a set of runs is.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "profile.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "tool/report/report.h"
#include "profile/analysis.h"
#include "profile/nodes.h"

static const char compare_help[] =
	"usage: incstack compare [OPTIONS] A B\n"
	"       incstack compare [OPTIONS] A B C...\n"
	"\n"
	"A profile may also be a trace file of incstack cpu or heap.\n"
	"For two profiles, prints the degree of overlap, the hot-edge coverage in both\n"
	"directions and the Pearson correlation, by self weight (nodes), by total weight\n"
	"(edges) and by both together; then the contexts whose share of the self weight\n"
	"changed most. Identical profiles have 1.000 everywhere. n/a: one side has no\n"
	"variance or no hot edge. For more profiles, compares each with the average of all\n"
	"and prints the median and quartiles.\n"
	"\n"
	"  -T, --threshold PART       an edge is hot if it has at least this part of the\n"
	"                             hottest edge's weight (default: 0.1)\n"
	"  -n, --top NUMBER           how many changed contexts to print (default: 10)\n"
	"  -k, --kind NAME            the kind of weight to compare (default: the first of A);\n"
	"                             its unit must be the same in all profiles\n"
	"  -o, --output FILE.html     also write a flame graph of the difference\n"
	"      --html FILE            another name for --output\n"
	"  -t, --threads              for trace files: begin contexts with the name of their\n"
	"                             thread\n"
	"  -F, --input-format FORMAT  the format of all profiles, regardless of their names\n"
	"  -h, --help                 this text\n"
	"\n"
	"Exit status: 0 success, 1 a file could not be read or written, 2 wrong usage. The\n"
	"difference between the profiles does not affect it.\n";

struct change {
	uint32_t node;
	double a, b; /* shares */
};

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

static int compare_changes(const void *x, const void *y)
{
	double a = fabs(((const struct change *)x)->b - ((const struct change *)x)->a);
	double b = fabs(((const struct change *)y)->b - ((const struct change *)y)->a);

	return (a < b) - (a > b);
}

static uint64_t sum_of(const struct incstack_profile *profile, uint32_t kind)
{
	uint64_t sum = 0;

	for (uint32_t node = 0; node < incstack_profile_nodes(profile); node++)
		sum += incstack__profile_self(profile, node, kind);
	return sum;
}

static size_t find_changes(const struct incstack_profile *both, struct change *changes)
{
	double a = (double)sum_of(both, 0), b = (double)sum_of(both, 1);
	size_t count = 0;

	for (uint32_t node = 1; node < incstack_profile_nodes(both); node++) {
		struct change c = {
			.node = node,
			.a = a > 0 ? (double)incstack__profile_self(both, node, 0) / a : 0,
			.b = b > 0 ? (double)incstack__profile_self(both, node, 1) / b : 0};

		if (fabs(c.a - c.b) > 1e-12)
			changes[count++] = c;
	}
	qsort(changes, count, sizeof(*changes), compare_changes);
	return count;
}

static int print_changes(const struct incstack_profile *both, size_t top)
{
	unsigned columns = tool_columns(stdout);
	struct change *changes = calloc(incstack_profile_nodes(both), sizeof(*changes));
	size_t count = changes ? find_changes(both, changes) : 0;

	if (count && top)
		printf("\n%7s %7s %8s  context, by change of its share of the self weight\n", "A",
		       "B", "change");
	for (size_t i = 0; i < count && i < top; i++) {
		char *text = tool_context_text(both, changes[i].node);

		printf("%6.2f%% %6.2f%% %+7.2f%%  ", 100 * changes[i].a, 100 * changes[i].b,
		       100 * (changes[i].b - changes[i].a));
		tool_name_clip(text ? text : "?", columns - 26, '<', stdout);
		putchar('\n');
		free(text);
	}
	free(changes);
	return changes ? 0 : INCSTACK_ENOMEM;
}

static int write_difference(const struct incstack_profile *both, const char *path)
{
	FILE *stream = tool_output_open(path);

	return stream ? tool_output_close(path, stream,
					  incstack__profile_write_difference(both, stream))
		      : TOOL_FAILED;
}

static int failed(int error)
{
	fprintf(stderr, "incstack: cannot compare: %s\n",
		error == INCSTACK_EINVAL ? "the profiles have different kinds of weight"
					 : incstack_error_text(error));
	return TOOL_FAILED;
}

static int compare_two(struct incstack_profile **profiles, uint32_t kind,
		       const struct tool_options *options)
{
	struct incstack_profile *both = NULL;
	int status = TOOL_DONE;
	int error = print_numbers(profiles[0], profiles[1], kind, options->threshold);

	if (!error)
		error = incstack__profile_overlay(profiles[0], profiles[1], kind, &both);
	if (!error)
		error = print_changes(both, options->top);
	if (!error && options->output)
		status = write_difference(both, options->output);
	incstack_profile_destroy(both);
	return error ? failed(error) : status;
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

static int compare_all(struct incstack_profile **profiles, size_t count,
		       const struct tool_options *options)
{
	int status = select_kinds(profiles, count, options->kind);

	if (status)
		return status;
	return count == 2 ? compare_two(profiles, 0, options)
			  : compare_runs(profiles, count, 0, options->threshold);
}

struct comparison {
	const struct tool_options *options;
	char **inputs;
	size_t count;
};

static int compare_inputs(void *context)
{
	const struct comparison *of = context;
	const struct tool_options *options = of->options;
	struct incstack_profile **profiles = calloc(of->count, sizeof(struct incstack_profile *));
	int status;

	if (!profiles)
		return TOOL_FAILED;
	status = tool_input_read(of->inputs, of->count,
				 options->input_format ? options->input_format : options->format,
				 options, profiles);
	if (!status)
		status = compare_all(profiles, of->count, options);
	for (size_t i = 0; i < of->count; i++)
		incstack_profile_destroy(profiles[i]);
	free(profiles);
	return status;
}

int tool_compare(int argc, char **argv)
{
	struct tool_options options;
	struct comparison comparison;
	int status = tool_options_read(argc, argv, &options);
	size_t count = (size_t)(argc - optind);

	if (status || options.help) {
		fputs(compare_help, status ? stderr : stdout);
		return status;
	}
	if (argc - optind < 2) {
		fprintf(stderr, "incstack: compare needs at least two profiles; see incstack "
				"compare --help\n");
		return TOOL_USAGE;
	}
	if (options.output && count != 2) {
		fprintf(stderr, "incstack: a flame graph needs exactly two profiles\n");
		return TOOL_USAGE;
	}
	status = tool_options_refuse(&options, count > 2 ? "narMLJU" : "arMLJU",
				     count > 2 ? "on more than two profiles" : "on compare");
	if (status)
		return status;
	comparison = (struct comparison){&options, argv + optind, count};
	return tool_profile_run(comparison.inputs, count, options.input_format | options.format,
				options.output, compare_inputs, &comparison);
}
