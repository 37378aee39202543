/* SPDX-License-Identifier: MIT
 *
 * The reports that are made of one replayed trace file.
 */
#ifndef INCSTACK_TOOL_REPORT_H
#define INCSTACK_TOOL_REPORT_H

#include <stdio.h>

#include <incstack/profile.h>

#include "heapfile/replay.h"
#include "symbols.h"

struct tool_report {
	const struct incstack__trace_reader *reader;
	const struct incstack__replay *replay;
	struct tool_symbols *symbols;
};

/* For people: totals, then the hottest contexts by each metric. */
void tool_report_text(const struct tool_report *report, FILE *out, unsigned columns);
/* Its parts: how the process ended; and a context, innermost frame first. */
void tool_report_end(const struct tool_report *report, FILE *out, unsigned columns);
void tool_report_frames(const struct tool_report *report, uint32_t node, FILE *out,
			unsigned columns);
/* The profile to write in other formats; the caller destroys it. 0 or INCSTACK_E*. Of contexts
 * with more than TOOL_DEPTH_MAX frames it has the outermost and the innermost, and in
 * between one frame "[frames left out]". */
#define TOOL_DEPTH_MAX 512
int tool_report_profile(const struct tool_report *report, struct incstack_profile **profile);

/* How many contexts are deeper than that. */
uint64_t tool_report_deep(const struct tool_report *report);

uint64_t tool_report_lost(const struct incstack__trace_totals *totals);
const char *tool_mode_name(uint32_t mode);

/* What the last line says; of several files it is the sum. */
struct tool_sum {
	uint64_t traces;
	uint64_t crosschecked;
	uint64_t mismatches;
	uint64_t lost;
	uint64_t truncated;
	uint64_t returns;
	uint64_t stale;
	uint64_t depth_sum;
	uint64_t popped_sum;
	uint64_t popped_count;
	uint64_t bytes;
	uint64_t mode_traces; /* of the file that `mode` is taken from: that with most traces */
	uint32_t mode;
};

void tool_sum_add(struct tool_sum *sum, const struct tool_sum *one);
void tool_sum_print(const struct tool_sum *sum, FILE *out);

/* The width of the terminal that a stream writes to, else $COLUMNS, else 100; at
 * least 50. */
unsigned tool_columns(FILE *out);

/* Reads file, prints the text report for a terminal of that width to out and writes
 * PREFIX.folded and PREFIX.html. sum may be null. Returns an exit status. */
int tool_report_make(const char *file, const char *prefix, FILE *out, unsigned columns,
		     struct tool_sum *sum);

#endif
