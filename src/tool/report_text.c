/* SPDX-License-Identifier: MIT
 *
 * The report for the terminal: totals, then the contexts that matter most.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

#define TOP 8     /* contexts in each list */
#define FRAMES 12 /* of a context */

struct metric {
	const char *title;
	size_t offset; /* in struct incstack__cct_values */
	int is_bytes;
};

static const struct metric metrics[] = {
	{"Allocated bytes", offsetof(struct incstack__cct_values, bytes), 1},
	{"Allocations", offsetof(struct incstack__cct_values, calls), 0},
	{"Live at the peak", offsetof(struct incstack__cct_values, peak), 1},
	{"Never freed", offsetof(struct incstack__cct_values, live), 1},
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

/* Keeps best[] in descending order. */
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

static void print_frames(const struct tool_report *report, uint32_t node, FILE *out,
			 unsigned columns)
{
	const struct incstack__cct_node *nodes = report->replay->cct.nodes;
	const unsigned width = columns > 40 ? columns - 20 : 20;

	for (unsigned i = 0; node != INCSTACK__CCT_ROOT; i++, node = nodes[node].parent) {
		const char *name = tool_symbols_name(report->symbols, nodes[node].code);

		if (i == FRAMES) {
			fprintf(out, "%20s... %u more\n", "", nodes[node].depth);
			return;
		}
		fprintf(out, "%20s%.*s%s\n", "", (int)(width - 3), name,
			strlen(name) > width - 3 ? "..." : "");
	}
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
	fprintf(out, "\n%s: %s\n", metric->title, text);
	for (unsigned i = 0; i < count; i++) {
		const uint64_t value = value_of(&cct->nodes[best[i]], metric);

		format_value(text, sizeof(text), value, metric->is_bytes);
		fprintf(out, "%12s %5.1f%%\n", text, 100.0 * (double)value / (double)total);
		print_frames(report, best[i], out, columns);
	}
}

static void print_damage(const struct tool_report *report, FILE *out)
{
	const struct incstack__trace_totals *totals = incstack__trace_reader_totals(report->reader);
	const struct incstack__trace_problem problem =
		incstack__trace_reader_problem(report->reader);

	if (problem.what != NULL)
		fprintf(out, "warning: damaged at byte %" PRIu64 ": %s; read up to there\n",
			problem.offset, problem.what);
	if (totals->truncated_bytes > 0)
		fprintf(out, "warning: the last block was not written whole (%" PRIu64 " bytes)\n",
			totals->truncated_bytes);
	if (totals->tally.events_dropped > 0)
		fprintf(out,
			"warning: %" PRIu64 " events could not be written; is the disk full?\n",
			totals->tally.events_dropped);
	if (totals->tally.flags & INCSTACK__TRACE_TALLY_EXEC)
		fprintf(out, "The process became another program (exec).\n");
	else if (!(totals->tally.flags & INCSTACK__TRACE_TALLY_PROCESS))
		fprintf(out, "warning: the program did not end normally; what it had not written "
			     "yet is missing\n");
}

void tool_report_text(const struct tool_report *report, FILE *out, unsigned columns)
{
	const struct incstack__replay *replay = report->replay;
	const struct incstack__trace_totals *totals = incstack__trace_reader_totals(report->reader);
	char text[32];

	fprintf(out, "Heap profile of: %.*s\n", (int)(columns > 40 ? columns - 17 : 23),
		incstack__trace_reader_header(report->reader)->command);
	print_damage(report, out);
	format_value(text, sizeof(text), replay->peak, 1);
	fprintf(out,
		"%" PRIu64 " traces of %" PRIu64 " threads, %u contexts, "
		"%.1f frames deep on average; peak %s\n",
		totals->traces, totals->threads, replay->cct.count - 1,
		incstack__replay_depth_mean(replay), text);
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		print_metric(report, &metrics[i], out, columns);
}
