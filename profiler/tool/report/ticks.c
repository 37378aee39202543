/* SPDX-License-Identifier: MIT
 *
 * Prints what became of the ticks of a CPU profile, or of the calls that a process made while incstack
 * heap -p was attached.
 */
#include <inttypes.h>

#include "report.h"

static const char *const reasons[INCSTACK__TICKS] = {
	[INCSTACK__TICK_NO_RULE] = "the code has no unwind rule",
	[INCSTACK__TICK_INEXACT] = "the unwind rule does not describe the instruction",
	[INCSTACK__TICK_RECORDER] = "the recorder was interrupted",
	[INCSTACK__TICK_NO_ROOM] = "no room for the trace",
	[INCSTACK__TICK_NO_STACK] = "the stack was nearly used up",
	[INCSTACK__TICK_UNLOADING] = "code was being unloaded",
	[INCSTACK__TICK_NO_RECORD] = "the thread had just begun or was about to end",
	[INCSTACK__TICK_MERGED] = "the clock ticked late or less often",
	[INCSTACK__TICK_KERNEL] = "time in the kernel, where the events may not tick",
};

static const char *reason_of(const struct tool_report *report, int tick)
{
	return tick == INCSTACK__TICK_NO_RECORD && report->form->unfinished != NULL
		       ? report->form->unfinished
		       : reasons[tick];
}

void tool_report_ticks(const struct tool_report *report, FILE *out)
{
	const uint64_t *ticks = incstack__tracefile_reader_totals(report->reader)->tally.ticks;
	const struct tool_ticks all = tool_ticks_of(ticks);

	fprintf(out,
		"of %" PRIu64 " expected %s %" PRIu64 " gave a trace, %" PRIu64
		" were queued, %" PRIu64 " failed, %" PRIu64 " were merged into later samples\n",
		all.expected, report->form->expected, ticks[INCSTACK__TICK_TAKEN],
		ticks[INCSTACK__TICK_QUEUED], all.failed, all.merged);
	for (int i = INCSTACK__TICK_FAILED_FIRST; i < INCSTACK__TICKS; i++)
		if (ticks[i] > 0)
			fprintf(out, "%12" PRIu64 " %s: %s\n", ticks[i],
				i < INCSTACK__TICK_MERGED_FIRST ? "failed" : "merged",
				reason_of(report, i));
}
