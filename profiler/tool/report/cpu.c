/* SPDX-License-Identifier: MIT
 *
 * The report on a CPU profile for the terminal: how well the program was sampled, the functions that
 * used most time, then the hottest contexts.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "tool/names.h"
#include "tool/profile_io.h"
#include "report.h"
#include "profile/analysis.h"

static const char *title_of(const struct tool_report *report)
{
	return tool_report_is_wall(report) ? "wall-clock time" : "CPU time";
}

static void print_time(const struct tool_report *report, FILE *out)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const struct tool_ticks all = tool_ticks_of(totals->tally.ticks);
	const uint64_t signals = all.expected - all.merged;
	const uint64_t asked = report->replay->interval;
	char used[32];
	char clock[32];
	char wanted[32];
	char reached[32];

	fprintf(out, "%s of %s were sampled; the clocks of the threads say %s\n",
		tool_amount(report->replay->bytes, "nanoseconds", used, sizeof(used)),
		title_of(report),
		tool_amount(totals->tally.cpu_ns, "nanoseconds", clock, sizeof(clock)));
	if (signals > 0 && !tool_report_is_wall(report))
		fprintf(out, "one sample every %s on average; requested: %s\n",
			tool_amount(all.expected * asked / signals, "nanoseconds", reached,
				    sizeof(reached)),
			tool_amount(asked, "nanoseconds", wanted, sizeof(wanted)));
	tool_report_ticks(report, out);
	if (totals->failed_calls > 0)
		fprintf(out,
			"%" PRIu64 " system calls of the program returned EINTR because a tick "
			"interrupted them\n",
			totals->failed_calls);
}

static double share(uint64_t part, uint64_t total)
{
	return total > 0 ? 100.0 * (double)part / (double)total : 0;
}

static void print_function(const struct tool_report *report,
			   const struct incstack__profile_function *function, const char *unit,
			   uint64_t total, FILE *out)
{
	char self[32];
	char all[32];

	fprintf(out, "%12s %5.1f%% %12s %5.1f%%  ",
		tool_amount(function->self, unit, self, sizeof(self)), share(function->self, total),
		tool_amount(function->total, unit, all, sizeof(all)),
		share(function->total, total));
	tool_name_clip(function->name != NULL ? function->name : "?", report->wish->columns - 41,
		       '>', out);
	fputc('\n', out);
}

static void print_functions(const struct tool_report *report, FILE *out)
{
	const struct incstack__replay *replay = report->replay;
	size_t count = report->wish->functions;
	struct incstack__profile_function *functions = calloc(count + 1, sizeof(*functions));
	struct incstack_profile_kind kind = {"", ""};

	(void)incstack_profile_kind(report->profile, report->kind, &kind);
	if (functions == NULL ||
	    incstack__profile_functions(report->profile, report->kind, functions, &count) != 0)
		count = 0;
	if (count > 0)
		fprintf(out, "\n%12s %6s %12s %6s  function\n", "self", "", "total", "");
	for (size_t i = 0; i < count; i++)
		print_function(report, &functions[i], kind.unit,
			       report->kind == 0 ? replay->bytes : replay->calls, out);
	free(functions);
}

void tool_report_cpu(const struct tool_report *report, FILE *out)
{
	tool_report_head(report, tool_report_is_wall(report) ? "wall-clock profile" : "CPU profile",
			 out);
	print_time(report, out);
	print_functions(report, out);
	tool_report_contexts(report, report->kind == 0 ? title_of(report) : "Samples", report->kind,
			     out);
}
