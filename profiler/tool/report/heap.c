/* SPDX-License-Identifier: MIT
 *
 * What is special about the report on a heap profile: its totals, and which lists answer most questions.
 */
#include <inttypes.h>
#include <sys/wait.h>

#include "tool/profile_io.h"
#include "report.h"

static const struct tool_report_section contexts[] = {
	{"live at peak", "Live at the peak", true},
	{"live at exit", "Still live at exit", true},
	{"resident", "Live and resident", true},
	{"swapped", "Live and swapped out", true},
	{"allocated", "Allocated", false},
	{"allocations", "Allocations", false},
	{"temporary", "Temporary allocations", false},
};

static const struct tool_report_section lines[] = {
	{"live at exit", "Still live at exit, by line", true},
	{"temporary", "Temporary allocations, by line", true},
	{"allocated", "Allocated, by line", false},
};

static const char *why_empty(const struct tool_report *report)
{
	const uint64_t end = incstack__tracefile_reader_totals(report->reader)->end;

	if (end != 0 && WIFSIGNALED((int)(end & 0xffff)))
		return "no allocation was recorded before the program was killed";
	return "no allocation was recorded; does the program have its own allocator?";
}

static void print_totals(const struct tool_report *report, FILE *out)
{
	const struct incstack__replay *replay = report->replay;
	char bytes[32];
	char peak[32];
	char live[32];

	tool_amount(replay->bytes, "bytes", bytes, sizeof(bytes));
	tool_amount(replay->peak, "bytes", peak, sizeof(peak));
	tool_amount(replay->live, "bytes", live, sizeof(live));
	fprintf(out, "allocated %s in %" PRIu64 " calls%s\nat the peak %s, still live at exit %s\n",
		bytes, replay->calls, replay->interval > 1 ? " (estimated)" : "", peak, live);
	if (replay->interval <= 1)
		fprintf(out,
			"temporary: %" PRIu64
			" calls (%.1f%%), freed before the thread allocated again\n",
			replay->temporary,
			replay->calls > 0
				? 100.0 * (double)replay->temporary / (double)replay->calls
				: 0.0);
	tool_report_memory(report, out);
	tool_report_resident(report, out);
	if (tool_report_is_attached(report))
		tool_report_ticks(report, out);
}

const struct tool_report_form tool_report_heap = {
	.name = "heap",
	.title = "Heap profile",
	.event = "recorded allocation",
	.dropped = "allocations and deallocations",
	.expected = "calls",
	.unfinished = "no return was seen, as at the end of the recording",
	.unit = "bytes",
	.weight = "allocated",
	.weight_name = "bytes",
	.calls = "calls",
	.calls_name = "calls",
	.has_memory = true,
	.contexts = {contexts, sizeof(contexts) / sizeof(contexts[0])},
	.lines = {lines, sizeof(lines) / sizeof(lines[0])},
	.why_empty = why_empty,
	.print_totals = print_totals,
};
