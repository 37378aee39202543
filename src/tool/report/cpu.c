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

#define FUNCTIONS 12 /* in the table */

static const struct tool_metric time_metric = {
	"CPU time", offsetof(struct incstack__cct_values, bytes), "nanoseconds"};

static const struct tool_metric wall_metric = {
	"wall-clock time", offsetof(struct incstack__cct_values, bytes), "nanoseconds"};

static const struct tool_metric *metric_of(const struct tool_report *report)
{
	return tool_report_is_wall(report) ? &wall_metric : &time_metric;
}

static void print_time(const struct tool_report *report, FILE *out)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const struct tool_ticks all = tool_ticks_of(totals->tally.ticks);
	const uint64_t signals = all.expected - all.lost;
	const uint64_t asked = report->replay->interval;
	char used[32];
	char clock[32];
	char wanted[32];
	char reached[32];

	fprintf(out, "%s of %s were sampled; the clocks of the threads say %s\n",
		tool_amount(report->replay->bytes, "nanoseconds", used, sizeof(used)),
		metric_of(report)->title,
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

static void print_functions(const struct tool_report *report,
			    const struct incstack_profile *profile, FILE *out, unsigned columns)
{
	struct incstack_profile_function functions[FUNCTIONS];
	const uint64_t total = report->replay->bytes;
	size_t count = FUNCTIONS;

	if (incstack_profile_functions(profile, 0, functions, &count) != 0 || count == 0)
		return;
	fprintf(out, "\n%12s %6s %12s %6s  function\n", "self", "", "total", "");
	for (size_t i = 0; i < count; i++) {
		char self[32];
		char all[32];

		fprintf(out, "%12s %5.1f%% %12s %5.1f%%  ",
			tool_amount(functions[i].self, "nanoseconds", self, sizeof(self)),
			share(functions[i].self, total),
			tool_amount(functions[i].total, "nanoseconds", all, sizeof(all)),
			share(functions[i].total, total));
		tool_name_clip(functions[i].name != NULL ? functions[i].name : "?", columns - 41,
			       '>', out);
		fputc('\n', out);
	}
}

void tool_report_cpu(const struct tool_report *report, const struct incstack_profile *profile,
		     FILE *out, unsigned columns)
{
	tool_report_head(report, tool_report_is_wall(report) ? "wall-clock profile" : "CPU profile",
			 out, columns);
	print_time(report, out);
	print_functions(report, profile, out, columns);
	tool_report_metric(report, metric_of(report), out, columns);
}
