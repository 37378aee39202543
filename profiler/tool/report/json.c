/* SPDX-License-Identifier: MIT
 *
 * The report as a document of JSON, for programs. docs/report-json.md describes it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <yajl/yajl_gen.h>

#include "tracefile/shares.h"
#include "tool/hottest.h"
#include "tool/names.h"
#include "profile/nodes.h"
#include "report.h"

#define TOOL_REPORT_JSON_VERSION 1

static void put_text(yajl_gen json, const char *text, size_t length)
{
	yajl_gen_string(json, (const unsigned char *)text, length);
}

static void put_key(yajl_gen json, const char *key)
{
	put_text(json, key, strlen(key));
}

static void put_number(yajl_gen json, const char *key, uint64_t number)
{
	put_key(json, key);
	yajl_gen_integer(json, number <= INT64_MAX ? (long long)number : INT64_MAX);
}

/* Names of files and programs may be any bytes. */
static void put_string(yajl_gen json, const char *key, const char *text)
{
	char valid[4096];

	put_key(json, key);
	if (text != NULL)
		put_text(json, valid, tool_name_valid(text, valid, sizeof(valid)));
	else
		yajl_gen_null(json);
}

static void put_weights(yajl_gen json, const struct tool_report *report, const char *key,
			const uint64_t *weights)
{
	struct incstack_profile_kind kind;

	put_key(json, key);
	yajl_gen_array_open(json);
	for (uint32_t k = 0; incstack_profile_kind(report->profile, k, &kind) == 0; k++)
		yajl_gen_integer(json, (long long)weights[k]);
	yajl_gen_array_close(json);
}

static void put_place(yajl_gen json, const char *name, size_t length, const char *file,
		      int32_t line)
{
	put_key(json, "function");
	put_text(json, name != NULL ? name : "?", name != NULL ? length : 1);
	put_string(json, "file", file);
	put_number(json, "line", line > 0 ? (uint64_t)line : 0);
}

/* ---- what was recorded ----------------------------------------------------------- */

static void put_kinds(yajl_gen json, const struct tool_report *report)
{
	uint64_t *totals = calloc(incstack_profile_nodes(report->profile), sizeof(*totals));
	struct incstack_profile_kind kind;

	put_key(json, "kinds");
	yajl_gen_array_open(json);
	for (uint32_t k = 0;
	     totals != NULL && incstack_profile_kind(report->profile, k, &kind) == 0; k++) {
		(void)incstack_profile_totals(report->profile, k, totals);
		yajl_gen_map_open(json);
		put_string(json, "name", kind.name);
		put_string(json, "unit", kind.unit);
		put_number(json, "total", totals[0]);
		yajl_gen_map_close(json);
	}
	yajl_gen_array_close(json);
	free(totals);
}

/* How the process ended; null if that is unknown. */
static void put_end(yajl_gen json, uint64_t end)
{
	const int status = (int)(end & 0xffff);

	put_key(json, "end");
	if (end == 0) {
		yajl_gen_null(json);
		return;
	}
	yajl_gen_map_open(json);
	if (WIFSIGNALED(status))
		put_number(json, "signal", (uint64_t)WTERMSIG(status));
	else
		put_number(json, "status", (uint64_t)WEXITSTATUS(status));
	yajl_gen_map_close(json);
}

static void put_memory(yajl_gen json, const struct tool_report *report,
		       const struct incstack__tracefile_totals *totals)
{
	put_key(json, "memory");
	yajl_gen_map_open(json);
	if (totals->memory_peak > 0) {
		put_number(json, "process_peak", totals->memory_peak);
		put_number(json, "anonymous_at_exit", totals->memory_anonymous);
	}
	if (report->form->has_memory)
		put_number(json, "malloc_peak", report->replay->peak);
	if (tool_report_hint(report) != NULL)
		put_string(json, "hint", tool_report_hint(report));
	yajl_gen_map_close(json);
}

/* What was resident, in bytes; null if nobody has looked. */
static void put_resident(yajl_gen json, const struct tool_report *report)
{
	const struct incstack__moment *moment = incstack__tracefile_reader_moment(report->reader);
	const struct incstack__resident *resident = &report->replay->resident;

	put_key(json, "resident");
	if (resident->resident == NULL) {
		yajl_gen_null(json);
		return;
	}
	yajl_gen_map_open(json);
	put_number(json, "time_ns", moment->head.time_ns);
	put_number(json, "took_ns", moment->head.took_ns);
	put_number(json, "allocations_meanwhile", moment->head.calls);
	put_number(json, "requested", resident->requested);
	put_number(json, "live", resident->live);
	put_number(json, "live_swapped", resident->live_swapped);
	put_number(json, "live_anonymous", resident->live_anonymous);
	put_number(json, "live_unmapped", resident->outside);
	put_number(json, "held", resident->held);
	put_number(json, "allocator", resident->rest[INCSTACK__OWNER_ALLOCATOR]);
	put_number(json, "fragmented", resident->shared);
	put_number(json, "stacks", resident->rest[INCSTACK__OWNER_STACKS]);
	put_number(json, "files_written", resident->rest[INCSTACK__OWNER_FILES]);
	put_number(json, "other", resident->rest[INCSTACK__OWNER_OTHER]);
	put_number(json, "anonymous", resident->anonymous);
	put_number(json, "read_or_shared", resident->common);
	put_number(json, "kernel_anonymous", moment->head.anonymous);
	put_number(json, "kernel_lazy_free", moment->head.lazy);
	put_number(json, "kernel_swapped", moment->head.swapped);
	put_number(json, "files_and_shared", resident->file);
	put_key(json, "partial");
	yajl_gen_bool(json, (moment->head.flags & INCSTACK__MOMENT_PARTIAL) != 0);
	yajl_gen_map_close(json);
}

static void put_traces(yajl_gen json, const struct tool_report *report,
		       const struct incstack__tracefile_totals *totals)
{
	put_key(json, "traces");
	yajl_gen_map_open(json);
	put_number(json, "taken", totals->traces);
	put_number(json, "lost", tool_report_lost(totals));
	put_number(json, "truncated", totals->truncated);
	put_number(json, "crosschecked", totals->tally.crosschecked);
	put_number(json, "mismatches", totals->tally.mismatches);
	put_number(json, "dropped", totals->tally.events_dropped);
	put_number(json, "contexts", report->replay->cct.count - 1);
	put_string(json, "mode", tool_mode_name(totals->tally.mode));
	yajl_gen_map_close(json);
}

/* The lines of the text report that say what is missing. */
static void put_warnings(yajl_gen json, const struct tool_report *report)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	put_key(json, "warnings");
	yajl_gen_array_open(json);
	if (out != NULL) {
		tool_report_head(report, "", out);
		tool_symbols_tell(report->symbols, "warning: ", out);
		fclose(out);
		for (char *at = text, *line; (line = strsep(&at, "\n")) != NULL;)
			if (strncmp(line, "note: ", 6) == 0 || strncmp(line, "warning: ", 9) == 0)
				put_text(json, line, strlen(line));
		free(text);
	}
	yajl_gen_array_close(json);
}

static void put_head(yajl_gen json, const struct tool_report *report)
{
	const struct incstack__tracefile_header *header =
		incstack__tracefile_reader_header(report->reader);
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);

	put_string(json, "format", "incstack report");
	put_number(json, "version", TOOL_REPORT_JSON_VERSION);
	put_string(json, "profile", report->form->name);
	put_string(json, "command", header->command);
	put_number(json, "pid", header->pid);
	put_number(json, "start_ns", header->start_ns);
	put_number(json, "interval", header->interval);
	put_end(json, totals->end);
	put_kinds(json, report);
	put_memory(json, report, totals);
	put_resident(json, report);
	put_traces(json, report, totals);
	put_warnings(json, report);
}

/* ---- what was found -------------------------------------------------------------- */

static void put_functions(yajl_gen json, const struct tool_report *report)
{
	char number[24];

	put_key(json, "functions");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < report->sums.count; i++) {
		const struct incstack__profile_sum *sum = &report->sums.rows[i];

		snprintf(number, sizeof(number), "0x%" PRIx64, sum->function);
		yajl_gen_map_open(json);
		put_key(json, "function");
		put_key(json, sum->name != NULL ? sum->name : number);
		put_weights(json, report, "own", sum->own);
		put_weights(json, report, "total", sum->total);
		yajl_gen_map_close(json);
	}
	yajl_gen_array_close(json);
}

static void put_lines(yajl_gen json, const struct tool_report *report)
{
	put_key(json, "lines");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < report->places.count; i++) {
		const struct tool_place *place = &report->places.all[i];

		yajl_gen_map_open(json);
		put_place(json, place->name, place->name_length, place->file, place->line);
		put_weights(json, report, "own", place->own);
		yajl_gen_map_close(json);
	}
	yajl_gen_array_close(json);
}

static void put_context(yajl_gen json, const struct tool_report *report, uint32_t number)
{
	struct incstack_profile_node node = {.size = sizeof(node)};
	size_t count;
	struct incstack_profile_frame *frames = tool_report_path(report->profile, number, &count);

	(void)incstack_profile_node(report->profile, number, &node);
	yajl_gen_map_open(json);
	put_weights(json, report, "own", node.weights);
	put_key(json, "frames");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < count; i++) {
		yajl_gen_map_open(json);
		put_place(json, frames[i].name, frames[i].name_length, frames[i].file,
			  frames[i].line);
		if (frames[i].flags & INCSTACK_OBJECT_POINTER) {
			put_key(json, "by_frame_pointer");
			yajl_gen_bool(json, 1);
		}
		yajl_gen_map_close(json);
	}
	yajl_gen_array_close(json);
	yajl_gen_map_close(json);
	free(frames);
}

/* The heaviest contexts of each kind; one that is among the heaviest of several kinds is there several times. */
static int put_contexts(yajl_gen json, const struct tool_report *report)
{
	struct incstack_profile_kind kind;
	int error = 0;

	put_key(json, "contexts");
	yajl_gen_array_open(json);
	for (uint32_t k = 0; error == 0 && incstack_profile_kind(report->profile, k, &kind) == 0;
	     k++) {
		struct tool_hottest hottest;

		if (!tool_report_wants(report, k))
			continue;
		error = tool_hottest_find(report->profile, k, tool_report_contexts_most(report),
					  &hottest);
		for (size_t i = 0; error == 0 && i < hottest.count; i++)
			put_context(json, report, hottest.nodes[i]);
		free(hottest.nodes);
	}
	yajl_gen_array_close(json);
	return error;
}

static void put_threads(yajl_gen json, const struct tool_report *report)
{
	const struct incstack__shares *shares = &report->replay->shares;

	put_key(json, "threads");
	yajl_gen_array_open(json);
	for (size_t i = 0; i < shares->thread_count; i++) {
		const struct incstack__share_of_thread *share = &shares->threads[i];
		const struct incstack__tracefile_thread *thread =
			incstack__tracefile_reader_thread(report->reader, share->number);

		yajl_gen_map_open(json);
		put_string(json, "name", thread != NULL ? thread->name : "");
		put_number(json, "tid", thread != NULL ? thread->tid : 0);
		put_number(json, report->form->calls_name, share->calls);
		put_number(json, report->form->weight_name, share->bytes);
		if (report->form->has_memory)
			put_number(json, "live", share->live);
		yajl_gen_map_close(json);
	}
	yajl_gen_array_close(json);
}

static void put_sizes(yajl_gen json, const struct tool_report *report)
{
	const struct incstack__share_of_size *sizes = report->replay->shares.sizes;

	put_key(json, "sizes");
	yajl_gen_array_open(json);
	for (unsigned i = 0; i < INCSTACK__SHARES_SIZES; i++) {
		if (sizes[i].calls == 0 && sizes[i].bytes == 0)
			continue;
		yajl_gen_map_open(json);
		put_number(json, "from", i > 0 ? UINT64_C(1) << (i - 1) : 0);
		if (i + 1 < INCSTACK__SHARES_SIZES)
			put_number(json, "below", UINT64_C(1) << i);
		put_number(json, "calls", sizes[i].calls);
		put_number(json, "bytes", sizes[i].bytes);
		yajl_gen_map_close(json);
	}
	yajl_gen_array_close(json);
}

static void print(void *context, const char *text, size_t length)
{
	fwrite(text, 1, length, context);
}

int tool_report_json(const struct tool_report *report, FILE *out)
{
	yajl_gen json = yajl_gen_alloc(NULL);
	int error;

	if (json == NULL)
		return INCSTACK_ENOMEM;
	yajl_gen_config(json, yajl_gen_beautify, 1);
	yajl_gen_config(json, yajl_gen_indent_string, " ");
	yajl_gen_config(json, yajl_gen_print_callback, print, out);
	yajl_gen_map_open(json);
	put_head(json, report);
	put_functions(json, report);
	put_lines(json, report);
	error = put_contexts(json, report);
	put_threads(json, report);
	put_sizes(json, report);
	yajl_gen_map_close(json);
	yajl_gen_free(json);
	return error;
}
