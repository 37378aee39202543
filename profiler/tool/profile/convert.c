/* SPDX-License-Identifier: MIT
 *
 * incstack convert and incstack merge. Converting holds a part of the profile at a time. When the
 * part is large, it is written and cleared. For HTML and --fold-recursion, the whole profile is
 * needed, so a large profile is pruned instead. A trace file becomes a whole profile, as does each
 * input of merge.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "expansion.h"
#include "input.h"
#include "profile.h"
#include "tool/profile_io.h"
#include "tool/report/report.h"
#include "profile/analysis.h"
#include "profile/files.h"
#include "profile/reduce.h"

static const char convert_help[] =
	"usage: incstack convert [OPTIONS] INPUT OUTPUT\n"
	"\n"
	"Writes the profile in file INPUT, which may be a trace file of incstack cpu or heap,\n"
	"to OUTPUT in another format. Of incstack cpu, HTML and Firefox files show when each\n"
	"thread was sampled. The suffix of a name selects the format; - means stdin or stdout.\n"
	"One line on stderr lists the details that OUTPUT cannot store.\n"
	"\n"
	"  .folded            folded stacks           --format folded\n"
	"  .pb.gz             pprof                   --format pprof\n"
	"  .speedscope.json   speedscope              --format speedscope\n"
	"  .firefox.json      Firefox Profiler        --format firefox\n"
	"  .otlp.pb           OpenTelemetry (OTLP)    --format otlp\n"
	"  .html              flame graph, output only --format html\n"
	"  by its content     perf script, input only --input-format perf-script\n"
	"                     heaptrack, input only   --input-format heaptrack\n"
	"                     massif, input only      --input-format massif\n"
	"                     DHAT, input only        --input-format dhat\n"
	"\n"
	"An input may be packed by gzip or zstd.\n"
	"\n"
	"  -f, --format FORMAT        the format of OUTPUT, regardless of its name\n"
	"  -F, --input-format FORMAT  the format of INPUT, regardless of its name (default for\n"
	"                             -: folded)\n"
	"  -k, --kind NAME            the kind of weight to write to folded stacks\n"
	"  -t, --threads              for a trace file: begin contexts with the name of their\n"
	"                             thread\n"
	"      --skip FUNCTION        look through FUNCTION: its callers get its own weight;\n"
	"                             * stands for any text; may be repeated\n"
	"      --allocators           of a trace file, keep functions that hand out memory\n"
	"      --focus FUNCTION       only contexts in which FUNCTION is; may be repeated\n"
	"      --suppressions FILE    take known leaks out of 'live at exit': lines leak:PATTERN, "
	"as\n"
	"                             for LeakSanitizer and heaptrack; may be repeated\n"
	"  -r, --fold-recursion       make each recursive call a part of the function's youngest\n"
	"                             call, so that no context has a function twice\n"
	"      --max-output BYTES     the limit of an output that repeats callers (default:\n"
	"                             64 MiB and 256 times the input)\n"
	"  -h, --help                 this text\n"
	"\n"
	"Exit status: 0 success, 1 a file could not be read or written, 2 wrong usage.\n";

static const char merge_help[] =
	"usage: incstack merge [OPTIONS] -o OUTPUT INPUT...\n"
	"\n"
	"Adds up profiles or trace files with the same kinds of weight. Formats as in incstack\n"
	"convert.\n"
	"\n"
	"  -o, --output OUTPUT        the file for the sum\n"
	"  -a, --average              first scale all profiles to the same large total, so that\n"
	"                             each counts equally; only relative weights are\n"
	"                             meaningful then\n"
	"  -f, --format FORMAT        the format of OUTPUT, regardless of its name\n"
	"  -F, --input-format FORMAT  the format of all INPUTs, regardless of their names\n"
	"  -k, --kind NAME            the kind of weight to write to folded stacks\n"
	"  -t, --threads              for trace files: begin contexts with the name of their\n"
	"                             thread\n"
	"      --skip FUNCTION        look through FUNCTION: its callers get its own weight;\n"
	"                             * stands for any text; may be repeated\n"
	"      --allocators           of trace files, keep functions that hand out memory\n"
	"      --focus FUNCTION       only contexts in which FUNCTION is; may be repeated\n"
	"      --suppressions FILE    take known leaks out of 'live at exit': lines leak:PATTERN, "
	"as\n"
	"                             for LeakSanitizer and heaptrack; may be repeated\n"
	"      --max-output BYTES     the limit of an output that repeats callers (default:\n"
	"                             64 MiB and 256 times the input)\n"
	"  -h, --help                 this text\n"
	"\n"
	"Exit status: 0 success, 1 a file could not be read or written, 2 wrong usage.\n";

struct conversion {
	const char *path, *kind;
	const struct tool_options *options;
	enum incstack_profile_format format;
	int fold_recursion;
	FILE *stream;
	struct incstack__profile_writer *writer;
	uint32_t losses;
	double left; /* bytes that the output may still take */
	int status;  /* not 0: an exit status, whose message was printed */
};

static int begin(struct conversion *to, const struct incstack_profile *profile)
{
	uint32_t kind;

	to->status = tool_kind_find(profile, to->kind, &kind);
	if (to->status)
		return INCSTACK_EINVAL;
	to->stream = tool_output_open(to->path);
	if (!to->stream) {
		to->status = TOOL_FAILED;
		return INCSTACK_EIO;
	}
	return incstack__profile_writer_begin(profile, to->format, kind, to->stream, &to->writer);
}

/* Adds a part to the output, which the first part begins. */
static int add_part(struct conversion *to, const struct incstack_profile *profile)
{
	int error;

	to->status = tool_output_fits(profile, to->path, (int)to->format, &to->left);
	if (to->status)
		return INCSTACK_EINVAL;
	error = to->writer ? 0 : begin(to, profile);
	return error ? error : incstack__profile_writer_add(to->writer);
}

/* Called when the part that was read so far is large. */
static int write_part(void *context, struct incstack_profile *profile)
{
	int error = add_part(context, profile);

	return error ? error : incstack__profile_clear(profile);
}

static void tell_pruned(const struct incstack_profile *profile)
{
	struct incstack_profile_meta meta = {.size = sizeof(meta)};

	if (!incstack_profile_meta(profile, &meta) && meta.pruned)
		fprintf(stderr,
			"incstack: %" PRIu64 " small contexts became \"[smaller contexts]\"\n",
			meta.pruned);
}

/* Writes the last part. Most profiles have only one. */
static int write_last(struct conversion *to, const struct incstack_profile *profile)
{
	uint32_t kind;
	int error = add_part(to, profile);

	if (!error && !tool_kind_number(profile, to->kind, &kind))
		to->losses = incstack__profile_losses(profile, to->format, kind);
	if (to->writer) {
		int finished = incstack__profile_writer_finish(to->writer, !error);

		error = error ? error : finished;
		to->writer = NULL;
	}
	return error;
}

static int finish(struct conversion *to, const struct incstack_profile *profile)
{
	struct incstack_profile *folded = NULL;
	int error;

	if (!to->fold_recursion)
		return write_last(to, profile);
	error = incstack__profile_fold_recursion(profile, &folded);
	if (!error)
		error = write_last(to, folded);
	incstack_profile_destroy(folded);
	return error;
}

/* Whether the writer, or what is done before, needs the whole profile. */
static bool needs_all(const struct conversion *to)
{
	return to->format == INCSTACK_FORMAT_HTML || to->fold_recursion ||
	       tool_filter_is_given(&to->options->filter);
}

/* Closes the output, and returns the exit status. */
static int end(struct conversion *to, const struct incstack_profile *profile, int status, int error)
{
	if (to->stream && to->status) /* a later part was too large */
		error = INCSTACK_ELIMIT;
	if (to->stream)
		status |=
			tool_output_close(to->path, to->stream, status ? INCSTACK_EFORMAT : error);
	else if (to->status)
		status = to->status;
	else if (error && !status) {
		fprintf(stderr, "incstack: cannot convert: %s\n", incstack_error_text(error));
		status = TOOL_FAILED;
	}
	if (!status && needs_all(to))
		tell_pruned(profile);
	if (!status)
		tool_tell_losses(to->losses);
	return status;
}

static int convert_trace(const char *from, int by_thread, struct conversion *to)
{
	struct incstack_profile *profile = NULL;
	bool is_whole;
	int status = tool_trace_profile(from, by_thread, &profile, &is_whole);

	if (!status)
		status = tool_input_filter(from, true, to->options, profile);
	if (!status) {
		const int error = finish(to, profile);

		/* The trace file keeps them. */
		to->losses &= ~(uint32_t)(INCSTACK__LOSS_MAPPINGS | INCSTACK__LOSS_PERIOD);
		status = end(to, profile, status, error);
	}
	incstack_profile_destroy(profile);
	return status;
}

static int convert(const char *from, int from_format, struct conversion *to)
{
	struct incstack__profile_input input = {.context = to};
	struct incstack_profile *profile = NULL;
	int status, error = 0;

	if (!from_format)
		from_format = incstack_profile_format_of(from);
	input.full = needs_all(to) ? tool_prune_full : write_part;
	if (to->format == INCSTACK_FORMAT_PPROF || to->format == INCSTACK_FORMAT_OTLP)
		input.keep = INCSTACK_KEEP_LABELS | INCSTACK_KEEP_MAPPINGS;
	input.nodes_max = tool_nodes_max(from_format);
	status = tool_profile_read(from, from_format, &input, &profile);
	if (!status)
		status = tool_input_filter(from, false, to->options, profile);
	if (!status)
		error = finish(to, profile);
	else if (to->writer)
		(void)incstack__profile_writer_finish(to->writer, 0);
	status = end(to, profile, status, error);
	incstack_profile_destroy(profile);
	return status;
}

/* Refuses -k for formats that store all kinds, which are all formats except folded stacks. */
static int refuse_kind(const struct tool_options *options, int format)
{
	return format == INCSTACK_FORMAT_FOLDED
		       ? TOOL_DONE
		       : tool_options_refuse(options, "k", "on this format, which has all kinds");
}

/* The input of a conversion, and the conversion. */
struct source {
	const char *path;
	const struct tool_options *options;
	struct conversion *to;
};

static int convert_source(void *context)
{
	const struct source *from = context;
	const struct tool_options *options = from->options;

	if (tool_input_is_trace(from->path, options->input_format)) {
		from->to->left = options->output_most > 0 ? options->output_most : 1e18;
		return convert_trace(from->path, options->threads, from->to);
	}
	if (tool_options_refuse(options, "t", "without a trace file"))
		return TOOL_USAGE;
	return convert(from->path, options->input_format, from->to);
}

int tool_convert(int argc, char **argv)
{
	struct tool_options options;
	struct conversion to = {0};
	struct source from = {.options = &options, .to = &to};
	int format, status = tool_options_read(argc, argv, &options);

	if (status || options.help) {
		if (!status)
			fputs(convert_help, stdout);
		return status;
	}
	if (argc - optind != 2) {
		fprintf(stderr, "incstack: convert needs an input and an output; see "
				"incstack convert --help\n");
		return TOOL_USAGE;
	}
	format = tool_output_format(argv[optind + 1], options.format);
	if (!format)
		return TOOL_USAGE;
	if (!strcmp(argv[optind], argv[optind + 1]) && strcmp(argv[optind], "-") != 0) {
		fprintf(stderr, "incstack: input and output are the same file\n");
		return TOOL_USAGE;
	}
	to.path = argv[optind + 1];
	to.kind = options.kind;
	to.options = &options;
	to.format = (enum incstack_profile_format)format;
	to.fold_recursion = options.fold_recursion;
	if (tool_options_refuse(&options, "oTnaHXJNSLU", "on convert") ||
	    refuse_kind(&options, format))
		return TOOL_USAGE;
	to.left = tool_output_most(argv + optind, 1, options.output_most);
	from.path = argv[optind];
	return tool_profile_run(argv + optind, 1, options.input_format, &options.filter, to.path,
				convert_source, &from);
}

/* ---- merge ---- */

static void destroy_all(struct incstack_profile **profiles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		incstack_profile_destroy(profiles[i]);
	free(profiles);
}

/* Merges all profiles, also the first profile, into a new profile. So frames of the first profile
 * become one frame if a merge takes them for equal (profile.h). */
static int sum(struct incstack_profile **profiles, size_t count, struct incstack_profile **result)
{
	struct incstack_profile_kind kinds[INCSTACK_PROFILE_KINDS_MAX];
	uint32_t used = 0;
	int error;

	while (!incstack_profile_kind(profiles[0], used, &kinds[used]))
		used++;
	error = incstack_profile_create(kinds, used, result);
	for (size_t i = 0; i < count && !error; i++)
		error = incstack_profile_merge(*result, profiles[i]);
	return error;
}

/* Returns the losses. They include the meta data, the comments and the period of inputs, because a
 * sum has none of these. */
static uint32_t merged_losses(struct incstack_profile **profiles, size_t count,
			      const struct incstack_profile *result,
			      const struct tool_options *options, uint32_t kind)
{
	const uint32_t own = INCSTACK__LOSS_META | INCSTACK__LOSS_COMMENTS | INCSTACK__LOSS_PERIOD;
	int format =
		options->format ? options->format : incstack_profile_format_of(options->output);
	uint32_t losses =
		incstack__profile_losses(result, (enum incstack_profile_format)format, kind);

	for (size_t i = 0; i < count; i++) {
		losses |= incstack__profile_losses(profiles[i], (enum incstack_profile_format)0, 0);
		losses |= own & incstack__profile_losses(profiles[i], INCSTACK_FORMAT_FOLDED, 0);
	}
	return losses;
}

static int merge(struct incstack_profile **profiles, size_t count,
		 const struct tool_options *options, double left)
{
	struct incstack_profile *result = NULL;
	uint32_t kind;
	int status, error;

	if (options->average)
		error = incstack__profile_average(
			(const struct incstack_profile *const *)(void *)profiles, count, &result);
	else
		error = sum(profiles, count, &result);
	if (error) {
		fprintf(stderr, "incstack: cannot merge: %s\n",
			error == INCSTACK_EINVAL ? "the profiles have different kinds of weight"
						 : incstack_error_text(error));
		incstack_profile_destroy(result);
		return TOOL_FAILED;
	}
	status = tool_kind_find(result, options->kind, &kind);
	if (!status)
		status = tool_output_fits(result, options->output,
					  tool_output_format(options->output, options->format),
					  &left);
	if (!status)
		status = tool_profile_write(result, options->output, options->format, kind);
	if (!status)
		tool_tell_losses(merged_losses(profiles, count, result, options, kind));
	incstack_profile_destroy(result);
	return status;
}

struct merging {
	const struct tool_options *options;
	char **inputs;
	size_t count;
	double left; /* see struct conversion */
};

/* Returns the limit of the output. The size of the inputs sets it unless an option does. A trace
 * file stores each context once, so a small file may rightly become a large output. With such an
 * input there is no limit unless an option sets it. */
static double most_of(const struct merging *of)
{
	for (size_t i = 0; i < of->count && !(of->options->output_most > 0); i++)
		if (tool_input_is_trace(of->inputs[i], of->options->input_format))
			return 1e18;
	return of->left;
}

static int merge_inputs(void *context)
{
	const struct merging *of = context;
	struct incstack_profile **profiles = calloc(of->count, sizeof(struct incstack_profile *));
	int status;

	if (!profiles) {
		fprintf(stderr, "incstack: cannot merge: %s\n",
			incstack_error_text(INCSTACK_ENOMEM));
		return TOOL_FAILED;
	}
	status = tool_input_read(of->inputs, of->count, of->options->input_format, false,
				 of->options, profiles);
	if (!status)
		status = merge(profiles, of->count, of->options, most_of(of));
	destroy_all(profiles, of->count);
	return status;
}

int tool_merge(int argc, char **argv)
{
	struct tool_options options;
	struct merging merging;
	int format, status = tool_options_read(argc, argv, &options);

	if (status || options.help) {
		if (!status)
			fputs(merge_help, stdout);
		return status;
	}
	if (optind >= argc || !options.output) {
		fprintf(stderr, "incstack: merge needs inputs and -o OUTPUT; see incstack merge "
				"--help\n");
		return TOOL_USAGE;
	}
	format = tool_output_format(options.output, options.format);
	if (!format || refuse_kind(&options, format) ||
	    tool_options_refuse(&options, "TnrHXJNSLU", "on merge"))
		return TOOL_USAGE;
	merging = (struct merging){
		&options, argv + optind, (size_t)(argc - optind),
		tool_output_most(argv + optind, (size_t)(argc - optind), options.output_most)};
	return tool_profile_run(merging.inputs, merging.count, options.input_format,
				&options.filter, options.output, merge_inputs, &merging);
}
