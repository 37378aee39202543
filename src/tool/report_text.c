/* SPDX-License-Identifier: MIT
 *
 * Prints the report for the terminal: totals, the functions that allocate most, then the most
 * important contexts.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "heapfile/trace_notes.h"
#include "report.h"

#define TOP 5        /* contexts in each list */
#define FUNCTIONS 12 /* in the table */

struct metric {
	const char *title;
	size_t offset; /* in struct incstack__cct_values */
	int is_bytes;
};

static const struct metric metrics[] = {
	{"Allocated", offsetof(struct incstack__cct_values, bytes), 1},
	{"Allocations", offsetof(struct incstack__cct_values, calls), 0},
	{"Live at the peak", offsetof(struct incstack__cct_values, peak), 1},
	{"Still live at exit", offsetof(struct incstack__cct_values, live), 1},
};

static uint64_t value_of(const struct incstack__cct_node *node, const struct metric *metric)
{
	return *(const uint64_t *)(const void *)((const char *)&node->values + metric->offset);
}

static void format_value(char *text, size_t size, uint64_t value, int is_bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double scaled = (double)value;
	int unit = 0;

	if (!is_bytes) {
		snprintf(text, size, "%" PRIu64, value);
		return;
	}
	for (; scaled >= 1024 && unit < 4; unit++)
		scaled /= 1024;
	snprintf(text, size, unit == 0 ? "%.0f %s" : "%.1f %s", scaled, units[unit]);
}

/* Inserts a node into best[], which is in descending order. */
static unsigned rank(const struct incstack__cct *cct, const struct metric *metric,
		     uint32_t best[TOP])
{
	unsigned count = 0;

	for (uint32_t node = 1; node < cct->count; node++) {
		const uint64_t value = value_of(&cct->nodes[node], metric);
		unsigned at = count;

		if (value == 0)
			continue;
		while (at > 0 && value_of(&cct->nodes[best[at - 1]], metric) < value)
			at--;
		if (at == TOP)
			continue;
		if (count < TOP)
			count++;
		memmove(&best[at + 1], &best[at], (count - at - 1) * sizeof(best[0]));
		best[at] = node;
	}
	return count;
}

static uint64_t total_of(const struct incstack__cct *cct, const struct metric *metric)
{
	uint64_t total = 0;

	for (uint32_t node = 1; node < cct->count; node++)
		total += value_of(&cct->nodes[node], metric);
	return total;
}

static void print_metric(const struct tool_report *report, const struct metric *metric, FILE *out,
			 unsigned columns)
{
	const struct incstack__cct *cct = &report->replay->cct;
	const uint64_t total = total_of(cct, metric);
	uint32_t best[TOP + 1];
	const unsigned count = rank(cct, metric, best);
	char text[32];

	format_value(text, sizeof(text), total, metric->is_bytes);
	fprintf(out, "\n%s: %s, hottest contexts\n", metric->title, text);
	for (unsigned i = 0; i < count; i++) {
		const uint64_t value = value_of(&cct->nodes[best[i]], metric);

		format_value(text, sizeof(text), value, metric->is_bytes);
		fprintf(out, "%12s %5.1f%%\n", text, 100.0 * (double)value / (double)total);
		tool_report_frames(report, best[i], out, columns);
	}
}

static void print_notes(uint64_t notes, FILE *out)
{
	for (unsigned note = 0; note < 64; note++)
		if (notes >> note & 1 && incstack__trace_note_text(note) != NULL)
			fprintf(out, "note: %s\n", incstack__trace_note_text(note));
}

static void print_damage(const struct tool_report *report, FILE *out)
{
	const struct incstack__trace_totals *totals = incstack__trace_reader_totals(report->reader);
	const struct incstack__trace_problem problem =
		incstack__trace_reader_problem(report->reader);

	if (totals->damaged_slots > 0)
		fprintf(out,
			"warning: the counters of %" PRIu64 " threads are inconsistent (did two "
			"runs write to this file?); it is unknown how many traces are lost\n",
			totals->damaged_slots);
	if (problem.what != NULL && problem.offset >= INCSTACK__TRACE_START)
		fprintf(out, "warning: damaged at byte %" PRIu64 ": %s; read up to there\n",
			problem.offset, problem.what);
	if (totals->truncated_bytes > 0)
		fprintf(out, "warning: the last block is incomplete (%" PRIu64 " bytes)\n",
			totals->truncated_bytes);
	if (totals->tally.events_dropped > 0)
		fprintf(out,
			"warning: %" PRIu64
			" allocations and deallocations were dropped: the disk is full, "
			"memory ran out, or a stack was nearly used up\n",
			totals->tally.events_dropped);
	if (totals->gaps > 0)
		fprintf(out,
			"warning: %" PRIu64 " times callers had not been walked when the program "
			"ended\n",
			totals->gaps);
	if (tool_report_lost(totals) > 0)
		fprintf(out,
			"warning: %" PRIu64
			" traces are lost: the process was killed in the middle of them, the disk "
			"was full, or there was no memory\n",
			tool_report_lost(totals));
	if (totals->truncated > 0)
		fprintf(out,
			"warning: the callers of %" PRIu64
			" frames are unknown: their code has no unwind rules, or was left without "
			"a return\n",
			totals->truncated);
	if (totals->interrupting > 0)
		fprintf(out,
			"warning: %" PRIu64
			" allocations and deallocations in signal handlers that "
			"interrupted another one are missing\n",
			totals->interrupting);
	if (totals->tally.samples == 0 && totals->started == 0)
		fprintf(out, "warning: no allocation was recorded; does the program have its own "
			     "allocator?\n");
}

/* ---- functions ------------------------------------------------------------------- */

struct function {
	const char *name; /* equal names are one pointer */
	const char *module;
	struct incstack__cct_values values;
};

static int by_name(const void *a, const void *b)
{
	const uintptr_t left = (uintptr_t)((const struct function *)a)->name;
	const uintptr_t right = (uintptr_t)((const struct function *)b)->name;

	return left < right ? -1 : left > right;
}

static int by_bytes(const void *a, const void *b)
{
	const uint64_t left = ((const struct function *)a)->values.bytes;
	const uint64_t right = ((const struct function *)b)->values.bytes;

	return left < right ? 1 : -(left > right);
}

static void add_values(struct incstack__cct_values *sum, const struct incstack__cct_values *more)
{
	sum->bytes += more->bytes;
	sum->calls += more->calls;
	sum->temporary += more->temporary;
	sum->live += more->live;
	sum->peak += more->peak;
}

/* Returns the function that requested the memory. operator new only passes on requests. */
static uint32_t site_of(const struct tool_report *report, uint32_t node)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	static const char new[] = "operator new";

	while (nodes[node].parent != INCSTACK__CCT_ROOT &&
	       strncmp(tool_symbols_name(report->symbols, nodes[node].code), new,
		       sizeof(new) - 1) == 0)
		node = nodes[node].parent;
	return node;
}

static struct function function_of(const struct tool_report *report, uint32_t node)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	const uint64_t code = nodes[site_of(report, node)].code;

	return (struct function){tool_symbols_name(report->symbols, code),
				 tool_symbols_module(report->symbols, code), nodes[node].values};
}

/* Finds the functions that call the allocator, by bytes. The caller frees them. */
static size_t find_functions(const struct tool_report *report, struct function **out)
{
	const struct incstack__cct *cct = &report->replay->cct;
	struct function *functions = calloc(cct->count, sizeof(*functions));
	size_t count = 0;
	size_t kept = 0;

	*out = functions;
	for (uint32_t node = 1; functions != NULL && node < cct->count; node++)
		if (cct->nodes[node].values.calls > 0)
			functions[count++] = function_of(report, node);
	if (count == 0)
		return 0;
	qsort(functions, count, sizeof(*functions), by_name);
	for (size_t i = 1; i < count; i++) {
		if (functions[i].name == functions[kept].name)
			add_values(&functions[kept].values, &functions[i].values);
		else
			functions[++kept] = functions[i];
	}
	qsort(functions, kept + 1, sizeof(*functions), by_bytes);
	return kept + 1;
}

static void print_functions(const struct tool_report *report, FILE *out, unsigned columns)
{
	struct function *functions;
	const size_t count = find_functions(report, &functions);
	const int width = columns > 68 ? (int)columns - 48 : 20;

	if (count > 0)
		fprintf(out, "\n%11s %10s %10s %11s   %s\n", "allocated", "calls", "temporary",
			"at exit", "function (module)");
	for (size_t i = 0; i < count && i < FUNCTIONS; i++) {
		const struct function *f = &functions[i];
		char bytes[32];
		char live[32];
		char text[512];

		format_value(bytes, sizeof(bytes), f->values.bytes, 1);
		format_value(live, sizeof(live), f->values.live, 1);
		if (*f->module && strncmp(f->name, f->module, strlen(f->module)) != 0)
			snprintf(text, sizeof(text), "%s (%s)", f->name, f->module);
		else
			snprintf(text, sizeof(text), "%s", f->name);
		fprintf(out, "%11s %10" PRIu64 " %10" PRIu64 " %11s   %.*s\n", bytes,
			f->values.calls, f->values.temporary, live, width, text);
	}
	free(functions);
}

/* ---- all of it ------------------------------------------------------------------- */

static void print_totals(const struct tool_report *report, FILE *out)
{
	const struct incstack__replay *replay = report->replay;
	char bytes[32];
	char peak[32];
	char live[32];

	format_value(bytes, sizeof(bytes), replay->bytes, 1);
	format_value(peak, sizeof(peak), replay->peak, 1);
	format_value(live, sizeof(live), replay->live, 1);
	fprintf(out, "allocated %s in %" PRIu64 " calls%s\nat the peak %s, still live at exit %s\n",
		bytes, replay->calls, replay->interval > 1 ? " (estimated)" : "", peak, live);
	if (replay->interval <= 1)
		fprintf(out,
			"temporary: %" PRIu64 " calls (%.1f%%), freed before the thread's next\n",
			replay->temporary,
			replay->calls > 0
				? 100.0 * (double)replay->temporary / (double)replay->calls
				: 0.0);
}

void tool_report_text(const struct tool_report *report, FILE *out, unsigned columns)
{
	const struct incstack__replay *replay = report->replay;
	const struct incstack__trace_totals *totals = incstack__trace_reader_totals(report->reader);

	fprintf(out, "Heap profile of: %.*s\n", (int)(columns > 40 ? columns - 17 : 23),
		incstack__trace_reader_header(report->reader)->command);
	print_damage(report, out);
	tool_report_end(report, out, columns);
	print_notes(totals->notes, out);
	fprintf(out,
		"%" PRIu64 " traces of %" PRIu64 " threads, %u contexts, %.1f frames deep on "
		"average\n",
		totals->traces, totals->threads, replay->cct.count - 1,
		incstack__replay_depth_mean(replay));
	if (totals->tally.crosschecked > 0)
		fprintf(out,
			"%" PRIu64 " traces were compared with full walks, %" PRIu64
			" of them by libunwind; %" PRIu64 " differ\n",
			totals->tally.crosschecked, totals->unwound, totals->tally.mismatches);
	print_totals(report, out);
	print_functions(report, out, columns);
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		print_metric(report, &metrics[i], out, columns);
}
