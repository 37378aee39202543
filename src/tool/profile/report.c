/* SPDX-License-Identifier: MIT
 *
 * incstack report for a profile: its origin, its hottest functions, its hottest contexts.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile.h"
#include "tool/profile_io.h"
#include "tool/report/report.h"

static const char report_help[] =
	"usage: incstack report [OPTIONS] PROFILE\n"
	"       incstack report [-t] TRACE-FILE [-o PREFIX]\n"
	"\n"
	"Prints the hottest functions and calling contexts of a profile (.folded, .pb.gz,\n"
	".speedscope.json, .firefox.json; - means stdin), for each kind of weight. A file\n"
	"with another name is read as a trace file of incstack cpu or heap: its hottest\n"
	"contexts are printed, and PREFIX.folded and PREFIX.html are written.\n"
	"\n"
	"  -f, --format FORMAT   the format of PROFILE, regardless of its name: folded, pprof,\n"
	"                        speedscope, firefox\n"
	"  -k, --kind NAME       report only this kind of weight\n"
	"  -n, --top NUMBER      how many functions and contexts to print (default: 10)\n"
	"  -t, --threads         for a trace file: begin each context with the name of its thread\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: 0 success, 1 the file could not be read, 2 wrong usage.\n";

struct report {
	const struct incstack_profile *profile;
	uint32_t kind;
	struct incstack_profile_kind about;
	uint64_t total;
	size_t top;
	unsigned columns;
};

static double share(const struct report *report, uint64_t weight)
{
	return report->total ? 100.0 * (double)weight / (double)report->total : 0;
}

static void print_meta(const struct incstack_profile *profile)
{
	struct incstack_profile_meta meta = {0};
	char text[64];

	(void)incstack_profile_meta(profile, &meta);
	if (meta.program)
		printf("Profile of: %s\n", meta.program);
	if (meta.time_ns) {
		time_t seconds = (time_t)(meta.time_ns / 1000000000);
		struct tm when;

		if (gmtime_r(&seconds, &when) &&
		    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &when))
			printf("Started: %s\n", text);
	}
	if (meta.duration_ns)
		printf("Duration: %s\n",
		       tool_amount(meta.duration_ns, "nanoseconds", text, sizeof(text)));
	if (meta.mode)
		printf("Mode: %s\n", meta.mode);
	if (meta.lost || meta.truncated)
		printf("Samples lost: %" PRIu64 ", truncated: %" PRIu64 "\n", meta.lost,
		       meta.truncated);
	if (meta.pruned)
		printf("Pruned: %" PRIu64 " small contexts were added to their callers\n",
		       meta.pruned);
}

static int print_functions(const struct report *report)
{
	struct incstack_profile_function *functions = calloc(report->top + 1, sizeof(*functions));
	size_t count = report->top;
	int error = functions ? incstack_profile_functions(report->profile, report->kind, functions,
							   &count)
			      : INCSTACK_ENOMEM;

	if (!error)
		printf("\n%12s %6s %12s %6s  function\n", "self", "", "total", "");
	for (size_t i = 0; i < count && !error; i++) {
		char self[32], total[32], number[32];
		const char *name = functions[i].name;

		snprintf(number, sizeof(number), "0x%" PRIx64, functions[i].method);
		printf("%12s %5.1f%% %12s %5.1f%%  ",
		       tool_amount(functions[i].self, report->about.unit, self, sizeof(self)),
		       share(report, functions[i].self),
		       tool_amount(functions[i].total, report->about.unit, total, sizeof(total)),
		       share(report, functions[i].total));
		tool_put_clipped(name ? name : number, report->columns - 41, '>', stdout);
		putchar('\n');
	}
	free(functions);
	return error;
}

/* Finds the hottest nodes, in descending order of self weight. Returns how many. */
static size_t hottest(const struct report *report, uint32_t *best)
{
	const struct incstack_profile *profile = report->profile;
	uint32_t nodes = incstack_profile_nodes(profile), kind = report->kind;
	size_t count = 0;

	for (uint32_t node = 1; node < nodes; node++) {
		uint64_t weight = incstack_profile_self(profile, node, kind);
		size_t at = count;

		while (at && incstack_profile_self(profile, best[at - 1], kind) < weight)
			at--;
		if (!weight || at >= report->top)
			continue;
		if (count < report->top)
			count++;
		memmove(best + at + 1, best + at, (count - at - 1) * sizeof(*best));
		best[at] = node;
	}
	return count;
}

static int print_contexts(const struct report *report)
{
	uint32_t *best = calloc(report->top + 1, sizeof(*best));
	size_t count = best ? hottest(report, best) : 0;

	if (count)
		printf("\n%12s %6s  context\n", "self", "");
	for (size_t i = 0; i < count; i++) {
		uint64_t weight = incstack_profile_self(report->profile, best[i], report->kind);
		char *text = tool_context_text(report->profile, best[i]), amount[32];

		printf("%12s %5.1f%%  ",
		       tool_amount(weight, report->about.unit, amount, sizeof(amount)),
		       share(report, weight));
		tool_put_clipped(text ? text : "?", report->columns - 21, '<', stdout);
		putchar('\n');
		free(text);
	}
	free(best);
	return best ? 0 : INCSTACK_ENOMEM;
}

static int print_kind(struct report *report)
{
	uint32_t nodes = incstack_profile_nodes(report->profile);
	char amount[32];
	int error;

	report->total = 0;
	for (uint32_t node = 0; node < nodes; node++)
		report->total += incstack_profile_self(report->profile, node, report->kind);
	printf("\n%s: %s in %u contexts\n", report->about.name,
	       tool_amount(report->total, report->about.unit, amount, sizeof(amount)), nodes - 1);
	error = print_functions(report);
	return error ? error : print_contexts(report);
}

static int print_kinds(const struct incstack_profile *profile, const struct tool_options *options)
{
	struct report report = {
		.profile = profile, .top = options->top, .columns = tool_columns(stdout)};
	uint32_t only;
	int error = 0;

	if (tool_kind_find(profile, options->kind, &only))
		return TOOL_USAGE;
	print_meta(profile);
	for (; !error && !incstack_profile_kind(profile, report.kind, &report.about); report.kind++)
		if (!options->kind || report.kind == only)
			error = print_kind(&report);
	if (error)
		fprintf(stderr, "incstack: %s\n", incstack_error_text(error));
	return error ? TOOL_FAILED : TOOL_DONE;
}

struct source {
	const char *path;
	const struct tool_options *options;
};

static int report_source(void *context)
{
	const struct source *from = context;
	const int format = from->options->format;
	struct incstack_profile_input input = {
		.full = tool_prune_full,
		.nodes_max =
			tool_nodes_max(format ? format : incstack_profile_format_of(from->path)),
	};
	struct incstack_profile *profile = NULL;
	int status = tool_profile_read(from->path, format, &input, &profile);

	if (!status)
		status = print_kinds(profile, from->options);
	incstack_profile_destroy(profile);
	return status;
}

int tool_profile_report(int argc, char **argv)
{
	struct tool_options options;
	struct source from = {.options = &options};
	int status = tool_options_read(argc, argv, &options);

	if (status || options.help) {
		fputs(report_help, status ? stderr : stdout);
		return status;
	}
	if (argc - optind != 1) {
		fprintf(stderr, "incstack: no profile given; see incstack report --help\n");
		return TOOL_USAGE;
	}
	if (!options.format)
		options.format = options.input_format;
	from.path = argv[optind];
	return tool_profile_run(argv + optind, 1, NULL, report_source, &from);
}
