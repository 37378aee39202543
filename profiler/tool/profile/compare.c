/* SPDX-License-Identifier: MIT
 *
 * incstack compare: what grew and what shrank between two profiles; or how similar profiles are.
 */
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "input.h"
#include "profile.h"
#include "tool/profile_io.h"

static const char compare_help[] =
	"usage: incstack compare [OPTIONS] BEFORE AFTER\n"
	"       incstack compare --similarity [OPTIONS] A B\n"
	"       incstack compare [OPTIONS] A B C...\n"
	"\n"
	"Prints what grew and what shrank from BEFORE to AFTER: for each kind of weight the "
	"totals,\n"
	"then the functions, their lines and the contexts whose own weight differs, the largest\n"
	"difference first. Functions and contexts are matched by name, so that a new build can be\n"
	"compared. A profile may also be a trace file of incstack cpu or heap.\n"
	"\n"
	"  -k, --kind NAME            only this kind of weight (default: all kinds that both "
	"have)\n"
	"  -T, --threshold AMOUNT     leave out smaller differences, and say how many:\n"
	"                             64k, 1.5M (bytes), 10ms, 2s (time), 100, 5% of the larger\n"
	"                             total\n"
	"  -n, --top NUMBER           how many differences to print (default: 10 functions and 5\n"
	"                             contexts of each kind)\n"
	"      --fail-if KIND +AMOUNT exit with status 3 if KIND grew by more; may be repeated.\n"
	"                             A percentage is that of BEFORE\n"
	"      --normalize            compare shares of the total, for runs of different length\n"
	"      --json                 print the differences as JSON\n"
	"  -o, --output FILE.html     also write a flame graph of the difference (of the first "
	"kind,\n"
	"                             unless --kind names another)\n"
	"      --html FILE            another name for --output\n"
	"  -t, --threads              for trace files: begin contexts with the name of their\n"
	"                             thread\n"
	"      --skip FUNCTION        look through FUNCTION, too: its callers get its own weight;\n"
	"                             * stands for any text; may be repeated\n"
	"      --allocators           do not look through functions that hand out memory\n"
	"      --focus FUNCTION       only contexts in which FUNCTION is; may be repeated\n"
	"      --suppressions FILE    take known leaks out of 'live at exit': lines leak:PATTERN, "
	"as\n"
	"                             for LeakSanitizer and heaptrack; may be repeated\n"
	"  -F, --input-format FORMAT  the format of all profiles, regardless of their names\n"
	"      --similarity           print the degree of overlap, the hot-edge coverage in both\n"
	"                             directions and the Pearson correlation instead, by self "
	"weight\n"
	"                             (nodes), by total weight (edges) and by both together; "
	"1.000:\n"
	"                             identical; n/a: one side has no variance or no hot edge.\n"
	"                             Of more than two profiles, each is compared with the "
	"average\n"
	"                             of all, and the median and quartiles are printed\n"
	"      --hot PART             with --similarity or more than two profiles: an edge is hot "
	"if\n"
	"                             it has at least this part of the hottest edge's weight\n"
	"                             (default: 0.1)\n"
	"  -h, --help                 this text\n"
	"\n"
	"Exit status: 0 success, 1 a file could not be read or written, 2 wrong usage, 3 a limit "
	"of\n"
	"--fail-if was exceeded. Otherwise differences do not affect it.\n"
	"\n"
	"Example: incstack compare -k 'live at exit' --fail-if 'live at exit' +1M old new\n";

struct comparison {
	const struct tool_options *options;
	char **inputs;
	size_t count;
};

static int compare_profiles(const struct comparison *of, struct incstack_profile **profiles)
{
	const struct tool_options *options = of->options;
	int status, page;

	if (of->count > 2 || options->similarity)
		return tool_similarity_print(profiles, of->count, options);
	status = tool_difference_print(profiles, of->inputs, options);
	if (!options->output || (status && status != TOOL_EXCEEDED))
		return status;
	page = tool_difference_page(profiles, options);
	return page ? page : status;
}

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
				 true, options, profiles);
	if (!status)
		status = compare_profiles(of, profiles);
	for (size_t i = 0; i < of->count; i++)
		incstack_profile_destroy(profiles[i]);
	free(profiles);
	return status;
}

/* Refuses options that would have no effect. */
static int refuse(const struct tool_options *options, size_t count)
{
	int status = tool_options_refuse(options, "arMLU", "on compare");

	if (!status && count > 2)
		status = tool_options_refuse(options, "noTXJN", "on more than two profiles");
	if (!status && options->similarity)
		status = tool_options_refuse(options, "noTXJN", "with --similarity");
	if (!status && count == 2 && !options->similarity)
		status = tool_options_refuse(options, "H", "without --similarity");
	return status;
}

int tool_compare(int argc, char **argv)
{
	struct tool_options options;
	struct comparison comparison;
	int status = tool_options_read(argc, argv, &options);
	size_t count = (size_t)(argc - optind);

	if (status || options.help) {
		if (!status)
			fputs(compare_help, stdout);
		return status;
	}
	if (argc - optind < 2) {
		fprintf(stderr, "incstack: compare needs at least two profiles; see incstack "
				"compare --help\n");
		return TOOL_USAGE;
	}
	status = refuse(&options, count);
	if (status)
		return status;
	if (options.output && strcmp(options.output, "-") != 0 &&
	    incstack_profile_format_of(options.output) != INCSTACK_FORMAT_HTML) {
		fprintf(stderr, "incstack: --output writes a page; its name must end with .html\n");
		return TOOL_USAGE;
	}
	comparison = (struct comparison){&options, argv + optind, count};
	return tool_profile_run(comparison.inputs, count, options.input_format | options.format,
				&options.filter, options.output, compare_inputs, &comparison);
}
