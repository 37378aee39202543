/* SPDX-License-Identifier: MIT
 *
 * The reports that are made of one replayed trace file.
 */
#ifndef INCSTACK_TOOL_REPORT_H
#define INCSTACK_TOOL_REPORT_H

#include <stdio.h>

#include "../heap/replay.h"
#include "symbols.h"

struct tool_report {
	const struct incstack__trace_reader *reader;
	const struct incstack__replay *replay;
	struct tool_symbols *symbols;
};

/* For people: totals, then the hottest contexts by each metric. */
void tool_report_text(const struct tool_report *report, FILE *out, unsigned columns);
/* One line per context: names from the outermost, joined by semicolons, and bytes. */
void tool_report_folded(const struct tool_report *report, FILE *out);
/* A flame graph in one file that needs nothing else. 0, or -1 without memory. */
int tool_report_html(const struct tool_report *report, FILE *out);

/* Reads file, prints the text report to out (null: none) and writes PREFIX.folded
 * and PREFIX.html. With `line` it ends with the one-line summary on stderr.
 * Returns an exit status. */
int tool_report_make(const char *file, const char *prefix, FILE *out, int line);

#endif
