/* SPDX-License-Identifier: MIT
 *
 * Makes the reports of a trace file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <incstack/incstack.h>

#include "folded_fit.h"
#include "tool/files.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "tool/progress.h"
#include "report.h"
#include "trace_map.h"

#define FOLDED_BYTES_MAX (256ull << 20)

unsigned tool_columns(FILE *out)
{
	const char *text = getenv("COLUMNS");
	unsigned long columns = text != NULL ? strtoul(text, NULL, 10) : 0;
	struct winsize size;

	if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		columns = size.ws_col;
	if (columns == 0 || columns > 10000)
		return 100;
	return columns < 50 ? 50 : (unsigned)columns;
}

struct tool_report_wish tool_report_wish_of(const char *prefix, int by_thread, unsigned columns)
{
	return (struct tool_report_wish){.by_thread = by_thread,
					 .functions = 12,
					 .contexts = TOOL_CONTEXTS_OF_PAGE,
					 .places = 3,
					 .threads = 3,
					 .frames = 5,
					 .columns = columns,
					 .prefix = prefix};
}

void tool_report_wish_full(struct tool_report_wish *wish)
{
	wish->is_full = true;
	wish->functions = 40;
	wish->contexts = 10;
	wish->places = 20;
	wish->threads = SIZE_MAX;
	wish->frames = 20;
}

static void take_sum(const struct tool_report *report, struct tool_sum *sum)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const struct incstack__replay *replay = report->replay;

	*sum = (struct tool_sum){
		.has_time = report->form->has_time,
		.has_ticks = report->form->has_time || tool_report_is_attached(report),
		.cpu_ns = replay->bytes,
		.traces = totals->traces,
		.crosschecked = totals->tally.crosschecked,
		.mismatches = totals->tally.mismatches,
		.lost = tool_report_lost(totals),
		.truncated = totals->truncated,
		.returns = totals->tally.returns,
		.stale = totals->tally.stale,
		.depth_sum = replay->depth_sum,
		.popped_sum = replay->popped_sum,
		.popped_count = replay->popped_count,
		.bytes = replay->bytes,
		.pid = incstack__tracefile_reader_header(report->reader)->pid,
		.start_ns = incstack__tracefile_reader_header(report->reader)->start_ns,
		.notes = totals->notes,
		.flags = totals->tally.flags,
		.mode_traces = totals->traces,
		.mode = totals->tally.mode,
	};
	memcpy(sum->ticks, totals->tally.ticks, sizeof(sum->ticks));
}

static int write_file(const struct incstack_profile *profile, enum incstack_profile_format format,
		      const char *prefix, const char *suffix, uint32_t kind)
{
	char *path = NULL;
	int status;

	if (asprintf(&path, "%s%s", prefix, suffix) < 0)
		return 1;
	status = tool_profile_write(profile, path, (int)format, kind);
	free(path);
	return status;
}

static int say_error(int error)
{
	fprintf(stderr, "incstack: cannot make the profile: %s\n", incstack_error_text(error));
	return 1;
}

/* Writes the profile as folded stacks, of which the smallest contexts are left out if they take too much room. */
static int write_folded(struct incstack_profile *profile, const char *prefix, uint32_t kind,
			FILE *out)
{
	struct incstack_profile_meta meta = {.size = sizeof(meta)};
	int error;

	tool_progress_phase("writing the folded stacks");
	error = tool_folded_fit(profile, kind, FOLDED_BYTES_MAX);
	if (error != 0)
		return say_error(error);
	(void)incstack_profile_meta(profile, &meta);
	if (meta.pruned > 0)
		fprintf(out,
			"\nnote: in the folded stacks %" PRIu64
			" small contexts became \"[smaller contexts]\" below their callers, to "
			"keep "
			"the file below %llu MiB\n",
			meta.pruned, FOLDED_BYTES_MAX >> 20);
	return write_file(profile, INCSTACK_FORMAT_FOLDED, prefix, TOOL_REPORT_FOLDED, kind);
}

/* Writes the profile as a flame graph, which leaves out what is too narrow, and in the other formats that are
 * wished. */
static int write_profile(struct incstack_profile *profile, const struct tool_report_wish *wish,
			 uint32_t kind, FILE *out)
{
	int failed;

	tool_progress_phase("writing the flame graph");
	failed = write_file(profile, INCSTACK_FORMAT_HTML, wish->prefix, TOOL_REPORT_PAGE, 0);
	if (wish->folded)
		failed |= write_folded(profile, wish->prefix, kind, out);
	return failed;
}

/* What to make of a trace file. */
struct work {
	const struct tool_report_wish *wish;
	FILE *out;
	struct tool_sum *sum;
	struct incstack_profile **profile; /* not null: only the profile is made, */
	bool *is_whole;                    /* and this becomes whether the file is not damaged */
	bool has_only_names;               /* no report is made */
	struct timespec written;           /* the time of the trace file */
};

/* Sums up what is printed. */
static int take_profile(struct tool_report *report, const struct incstack_profile *profile)
{
	int error;

	report->profile = profile;
	error = incstack__profile_sums(profile, &report->sums);
	return error != 0 ? error
			  : tool_places_find(profile, report->form->has_memory, &report->places);
}

static void release(struct tool_report *report)
{
	free(report->sums.rows);
	free(report->places.all);
}

static int write_reports(struct tool_report *report, const struct work *work,
			 struct incstack_profile *profile, const struct tool_filtered *filtered)
{
	const uint64_t deep = tool_report_deep(report);
	int error;

	if (tool_kind_find(profile, work->wish->kind, &report->kind) != 0)
		return TOOL_USAGE;
	error = take_profile(report, profile);
	if (error != 0)
		return say_error(error);
	if (work->wish->is_json) {
		tool_filter_tell(filtered, "incstack: ", NULL, stderr);
		error = tool_report_json(report, work->out);
		return error != 0 ? say_error(error) : 0;
	}
	tool_report_print(report, work->out);
	tool_filter_tell(filtered, "\n", NULL, work->out);
	if (deep > 0)
		fprintf(work->out,
			"\nnote: %" PRIu64 " contexts have more than %d frames; flame graph and "
			"folded stacks leave out their middle\n",
			deep, TOOL_DEPTH_MAX);
	tool_symbols_tell(report->symbols, "warning: ", work->out);
	fflush(work->out);
	return write_profile(profile, work->wish, report->kind, work->out);
}

static int make_reports(struct tool_report *report, const struct work *work)
{
	struct incstack_profile *profile;
	struct tool_filtered filtered;
	int error;
	int status;

	tool_progress_phase("looking up names");
	error = tool_report_profile(report, &profile);
	if (error != 0)
		return say_error(error);
	status = tool_filter_apply(work->wish->filter, true, profile, &filtered);
	if (status == TOOL_DONE && filtered.is_empty) {
		tool_filter_say_empty(work->wish->filter);
		status = TOOL_FAILED;
	}
	if (status == TOOL_DONE)
		status = write_reports(report, work, profile, &filtered);
	release(report);
	incstack_profile_destroy(profile);
	if (work->sum != NULL)
		take_sum(report, work->sum);
	return status;
}

/* Says that a profile lacks the rest of its trace file, which the text report also says. Returns whether it does not. */
static bool tell_damage(const struct tool_report *report)
{
	const struct incstack__tracefile_problem problem =
		incstack__tracefile_reader_problem(report->reader);
	const uint64_t cut = incstack__tracefile_reader_totals(report->reader)->truncated_bytes;

	if (problem.what != NULL)
		fprintf(stderr,
			"incstack: warning: the trace file is damaged at byte %" PRIu64
			"; what follows is missing\n",
			problem.offset);
	else if (cut > 0)
		fprintf(stderr,
			"incstack: warning: the trace file is cut off; its end is missing\n");
	return problem.what == NULL && cut == 0;
}

static int make_profile(const struct tool_report *report, const struct work *work)
{
	const int error = tool_report_profile(report, work->profile);

	tool_symbols_tell(report->symbols, "incstack: warning: ", stderr);
	*work->is_whole = tell_damage(report);
	return error != 0 ? say_error(error) : 0;
}

/* Why no names can be written into the file, or null. A file that is damaged would lose its end. */
static const char *why_no_names(const struct incstack__tracefile_reader *reader)
{
	if (incstack__tracefile_reader_resolved(reader)->texts != NULL)
		return "has its names already";
	if (incstack__tracefile_reader_problem(reader).what != NULL ||
	    incstack__tracefile_reader_totals(reader)->truncated_bytes > 0)
		return "is damaged or cut off, so it gets no names";
	return NULL;
}

static int make_names(const struct tool_report *report)
{
	const char *why = why_no_names(report->reader);
	int error;

	if (why != NULL) {
		fprintf(stderr, "incstack: the trace file %s\n", why);
		return 1;
	}
	tool_progress_phase("looking up names");
	error = tool_resolve(report->symbols, &report->replay->cct, report->wish->resolved);
	return error != 0 ? say_error(error) : 0;
}

static int replay_reader(struct incstack__tracefile_reader *reader, const struct work *work)
{
	struct incstack__replay replay;
	struct tool_report report = {.form = tool_report_form_of(reader),
				     .reader = reader,
				     .replay = &replay,
				     .symbols = tool_symbols_open(reader, &work->written),
				     .wish = work->wish};
	int status = 1;

	if (incstack__replay_run(&replay, reader, work->wish->by_thread) != 0 ||
	    report.symbols == NULL)
		fprintf(stderr, "incstack: out of memory; try a larger --interval\n");
	else if (work->profile != NULL)
		status = make_profile(&report, work);
	else
		status = work->has_only_names ? 0 : make_reports(&report, work);
	if (status == 0 && work->wish->resolved != NULL)
		status = make_names(&report);
	tool_symbols_close(report.symbols);
	incstack__replay_free(&replay);
	return status;
}

static int read_file(const char *file, const struct work *work)
{
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem = {"out of memory", 0};
	struct work dated = *work;
	void *data;
	size_t size;
	int status = 1;

	if (tool_trace_map(file, &data, &size, &dated.written) != 0)
		return 1;
	tool_progress_phase("reading the events");
	tool_progress_start(file);
	if (incstack__tracefile_open(data, size, &reader, &problem) == 0) {
		status = replay_reader(reader, &dated);
		incstack__tracefile_close(reader);
	} else {
		fprintf(stderr,
			"incstack: %s: %s (byte %" PRIu64
			"); make one with: incstack heap -o FILE -- PROGRAM\n",
			tool_name(file), problem.what == NULL ? "out of memory" : problem.what,
			problem.offset);
	}
	tool_progress_end();
	tool_trace_unmap(data, size);
	return status;
}

int tool_report_make(const char *file, const struct tool_report_wish *wish, FILE *out,
		     struct tool_sum *sum)
{
	return read_file(file, &(struct work){.wish = wish, .out = out, .sum = sum});
}

int tool_trace_resolve(const char *file, struct tool_resolved *resolved)
{
	const struct tool_report_wish wish = {.resolved = resolved};

	return read_file(file, &(struct work){.wish = &wish, .has_only_names = true});
}

int tool_trace_profile(const char *file, int by_thread, struct incstack_profile **profile,
		       bool *is_whole)
{
	const struct tool_report_wish wish = {.by_thread = by_thread};

	return read_file(file,
			 &(struct work){.wish = &wish, .profile = profile, .is_whole = is_whole});
}

int tool_trace_is_one(const char *file)
{
	const int fd = tool_files_input(file);
	uint64_t magic = 0;
	const int is_one = fd >= 0 && pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
			   magic == INCSTACK__TRACEFILE_MAGIC;

	if (fd >= 0)
		close(fd);
	return is_one;
}
