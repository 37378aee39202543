/* SPDX-License-Identifier: MIT
 *
 * incstack report for a profile: its origin, its hottest functions, its hottest contexts.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "input.h"
#include "profile.h"
#include "tool/hottest.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "tool/report/report.h"
#include "profile/analysis.h"
#include "profile/files.h"
#include "profile/nodes.h"

static const char report_help[] =
	"usage: incstack report [OPTIONS] PROFILE\n"
	"       incstack report [-t] [-k NAME] [-n NUMBER] [--full] [-o PREFIX] [--folded] "
	"TRACE-FILE\n"
	"       incstack report [-t] [-k NAME] [-n NUMBER] --json TRACE-FILE\n"
	"\n"
	"Prints the hottest functions and calling contexts of a profile (.folded, .pb.gz,\n"
	".speedscope.json, .firefox.json, .otlp.pb; - means stdin), for each kind of weight. The\n"
	"output of perf script and files of heaptrack, massif and DHAT are known by their "
	"content.\n"
	"Each may be packed by gzip or zstd. A file with another name is read as a trace file\n"
	"of incstack cpu or heap: its hottest contexts are printed, and PREFIX.html is written.\n"
	"\n"
	"  -f, --format FORMAT   the format of PROFILE, regardless of its name: folded, pprof,\n"
	"                        speedscope, firefox, otlp\n"
	"  -k, --kind NAME       report only this kind of weight; PREFIX.folded has\n"
	"                        it, too (default: the first)\n"
	"  -n, --top NUMBER      how many functions and contexts to print (default: 10; for a\n"
	"                        trace file 12 functions, and 2 to 5 contexts of each kind)\n"
	"      --full            for a trace file: more of each section, and all sections\n"
	"      --json            for a trace file: the report as JSON for other programs;\n"
	"                        writes no file\n"
	"  -o, --output PREFIX   for a trace file: the prefix (default: TRACE-FILE)\n"
	"  -t, --threads         for a trace file: begin each context with the name of its thread\n"
	"      --folded          for a trace file: write PREFIX.folded, too\n"
	"      --skip FUNCTION   look through FUNCTION, too: its callers get its own weight; * "
	"stands\n"
	"                        for any text; may be repeated\n"
	"      --allocators      do not look through functions that hand out memory\n"
	"      --focus FUNCTION  only contexts in which FUNCTION is; may be repeated\n"
	"      --suppressions FILE  take known leaks out of 'live at exit': lines leak:PATTERN, as "
	"for\n"
	"                        LeakSanitizer and heaptrack; may be repeated\n"
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
	struct incstack_profile_meta meta = {.size = sizeof(meta)};
	char text[64];

	(void)incstack_profile_meta(profile, &meta);
	if (meta.program)
		printf("Profile of: %s\n", tool_name(meta.program));
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
		printf("Mode: %s\n", tool_name(meta.mode));
	if (meta.lost || meta.truncated)
		printf("Samples lost: %" PRIu64 ", truncated: %" PRIu64 "\n", meta.lost,
		       meta.truncated);
	if (meta.pruned)
		printf("Pruned: %" PRIu64 " small contexts became \"[smaller contexts]\"\n",
		       meta.pruned);
}

static int print_functions(const struct report *report)
{
	struct incstack__profile_function *functions = calloc(report->top + 1, sizeof(*functions));
	size_t count = report->top;
	int error = functions ? incstack__profile_functions(report->profile, report->kind,
							    functions, &count)
			      : INCSTACK_ENOMEM;

	if (!error)
		printf("\n%12s %6s %12s %6s  function\n", "self", "", "total", "");
	for (size_t i = 0; i < count && !error; i++) {
		char self[32], total[32], number[32];
		const char *name = functions[i].name;

		snprintf(number, sizeof(number), "0x%" PRIx64, functions[i].function);
		printf("%12s %5.1f%% %12s %5.1f%%  ",
		       tool_amount(functions[i].self, report->about.unit, self, sizeof(self)),
		       share(report, functions[i].self),
		       tool_amount(functions[i].total, report->about.unit, total, sizeof(total)),
		       share(report, functions[i].total));
		tool_name_clip(name ? name : number, report->columns - 41, '>', stdout);
		putchar('\n');
	}
	free(functions);
	return error;
}

static void print_context(const struct report *report, uint32_t node)
{
	uint64_t weight = incstack__profile_self(report->profile, node, report->kind);
	char *text = tool_context_text(report->profile, node), amount[32];

	printf("%12s %5.1f%%  ", tool_amount(weight, report->about.unit, amount, sizeof(amount)),
	       share(report, weight));
	tool_name_clip(text ? text : "?", report->columns - 21, '<', stdout);
	putchar('\n');
	free(text);
}

static int print_kind(struct report *report)
{
	struct tool_hottest hottest;
	char amount[32];
	int error = tool_hottest_find(report->profile, report->kind, report->top, &hottest);

	if (error)
		return error;
	report->total = hottest.total;
	printf("\n%s: %s in %u contexts\n", tool_name(report->about.name),
	       tool_amount(report->total, report->about.unit, amount, sizeof(amount)),
	       incstack_profile_nodes(report->profile) - 1);
	error = print_functions(report);
	if (!error && hottest.count)
		printf("\n%12s %6s  context\n", "self", "");
	for (size_t i = 0; i < hottest.count && !error; i++)
		print_context(report, hottest.nodes[i]);
	free(hottest.nodes);
	return error;
}

/* Makes contexts one that are printed alike. Their frames may differ in what is not printed: the source
 * file, or whether the function was inlined. */
static int copy_by_text(const struct incstack_profile *profile, struct incstack_profile *copy,
			uint32_t *map)
{
	uint32_t nodes = incstack_profile_nodes(profile);
	int error = 0;

	for (uint32_t i = 1; i < nodes && !error; i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};
		struct incstack_profile_frame printed;

		(void)incstack_profile_node(profile, i, &node);
		printed = (struct incstack_profile_frame){.size = sizeof(printed),
							  .function = node.frame.function,
							  .name = node.frame.name,
							  .name_length = node.frame.name_length,
							  .line = node.frame.line};
		error = incstack_profile_add_node(copy, map[node.parent], &printed, &map[i]);
		if (!error)
			error = incstack_profile_add_weights(copy, map[i], node.weights);
	}
	return error;
}

static int create_like(const struct incstack_profile *profile, struct incstack_profile **copy)
{
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];
	struct incstack_profile_meta meta = {.size = sizeof(meta)};
	uint32_t count = 0;
	int error;

	while (!incstack_profile_kind(profile, count, &kinds[count]))
		count++;
	(void)incstack_profile_meta(profile, &meta);
	error = incstack_profile_create(kinds, count, copy);
	return error ? error : incstack_profile_set_meta(*copy, &meta);
}

static int by_text(struct incstack_profile **profile)
{
	struct incstack_profile *copy = NULL;
	uint32_t *map = calloc(incstack_profile_nodes(*profile), sizeof(*map));
	int error = map ? create_like(*profile, &copy) : INCSTACK_ENOMEM;

	if (!error)
		error = copy_by_text(*profile, copy, map);
	free(map);
	if (error) {
		fprintf(stderr, "incstack: %s\n", incstack_error_text(error));
		incstack_profile_destroy(copy);
		return TOOL_FAILED;
	}
	incstack_profile_destroy(*profile);
	*profile = copy;
	return TOOL_DONE;
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

/* What to report on. */
struct source {
	const char *path;
	struct tool_options *options;
};

static int read_and_print(void *context)
{
	const struct source *of = context;
	const char *path = of->path;
	struct tool_options *options = of->options;
	struct incstack__profile_input input = {.full = tool_prune_full};
	struct incstack_profile *profile = NULL;
	struct tool_filtered done;
	int status;

	input.nodes_max = tool_nodes_max(options->format ? options->format
							 : incstack_profile_format_of(path));
	status = tool_profile_read(path, options->format, &input, &profile);
	if (!status)
		status = tool_filter_apply(&options->filter, true, profile, &done);
	if (!status && done.is_empty) {
		tool_filter_say_empty(&options->filter);
		status = TOOL_FAILED;
	}
	if (!status)
		status = by_text(&profile);
	if (!status)
		status = print_kinds(profile, options);
	if (!status)
		tool_filter_tell(&done, "\n", NULL, stdout);
	incstack_profile_destroy(profile);
	return status;
}

/* The options that do not apply to the report of a profile. */
#define PROFILE_REFUSES "oTatrMHXJNSLU"
#define PROFILE_WHERE "on the report of a profile"

static int report_profile(char **path, struct tool_options *options)
{
	struct source of = {*path, options};
	const int status = tool_options_refuse(options, PROFILE_REFUSES, PROFILE_WHERE);

	if (status)
		return status;
	if (!options->format)
		options->format = options->input_format;
	return tool_profile_run(path, 1, options->format, &options->filter, NULL, read_and_print,
				&of);
}

/* What to make of a file whose name does not show its format. */
struct trace {
	struct source of;
	struct tool_report_wish wish;
};

static int make_report(void *context)
{
	const struct trace *trace = context;
	int status;

	if (!tool_input_is_foreign(trace->of.path))
		return tool_report_make(trace->of.path, &trace->wish, stdout, NULL);
	status = tool_options_refuse(trace->of.options, PROFILE_REFUSES, PROFILE_WHERE);
	return status ? status : read_and_print((void *)(uintptr_t)&trace->of);
}

static int report_trace(const char *path, struct tool_options *options)
{
	struct tool_report_wish wish = tool_report_wish_of(options->output ? options->output : path,
							   options->threads, tool_columns(stdout));
	struct trace trace;
	const char **files;
	int status = tool_options_refuse(options, "TarMHXNS", "on a report");

	if (!status && options->json)
		status = tool_options_refuse(options, "UoL", "with --json");
	if (status)
		return status;
	wish.kind = options->kind;
	wish.filter = &options->filter;
	wish.is_json = options->json;
	if (options->full)
		tool_report_wish_full(&wish);
	wish.folded = options->folded;
	if (tool_options_given(options, 'n'))
		wish.functions = wish.contexts = wish.places = options->top;
	trace = (struct trace){{path, options}, wish};
	files = tool_filter_inputs(&path, 1, &options->filter);
	if (files != NULL)
		status = tool_report_run(files, 1, options->filter.files.count, &wish.prefix, false,
					 make_report, &trace);
	free(files);
	return files != NULL ? status : TOOL_FAILED;
}

int tool_report(int argc, char **argv)
{
	struct tool_options options;
	int status = tool_options_read(argc, argv, &options);
	const char *path = argv[optind];

	if (status || options.help) {
		if (!status)
			fputs(report_help, stdout);
		return status;
	}
	if (argc - optind != 1) {
		fprintf(stderr, "incstack: no profile or trace file given, or several; see "
				"incstack report --help\n");
		return TOOL_USAGE;
	}
	if (options.format || options.input_format || !strcmp(path, "-") ||
	    incstack_profile_format_of(path))
		return report_profile(argv + optind, &options);
	return report_trace(path, &options);
}
