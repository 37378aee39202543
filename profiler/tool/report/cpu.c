/* SPDX-License-Identifier: MIT
 *
 * The report on a CPU profile for the terminal: how well the program was sampled, the functions that
 * used most time, then the hottest contexts.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
	const uint64_t signals = all.expected - all.lost;
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

static uint64_t total_of(const struct tool_report *report, uint32_t kind)
{
	uint64_t total = 0;

	for (size_t i = 0; i < report->sums.count; i++)
		total += report->sums.rows[i].own[kind];
	return total;
}

/* Prints what the threads did with their time. */
static void print_states(const struct tool_report *report, FILE *out)
{
	const uint64_t all = total_of(report, 0);
	char amount[32];

	if (!tool_report_is_wall(report))
		return;
	fprintf(out, "\n%12s %6s  running, or waiting for\n", "time", "");
	for (uint32_t i = 0; i < INCSTACK__STATES; i++) {
		const uint64_t time = total_of(report, tool_report_kind_of(report, i));

		if (time > 0)
			fprintf(out, "%12s %5.1f%%  %s\n",
				tool_amount(time, "nanoseconds", amount, sizeof(amount)),
				share(time, all), incstack__state_name(i));
	}
}

/* Prints the column of a wall-clock profile that tells work from waits. Returns its width. */
static unsigned print_running(const struct tool_report *report,
			      const struct incstack__profile_sum *sum, FILE *out)
{
	enum { WIDTH = 13 };
	char running[32];

	if (!tool_report_is_wall(report))
		return 0;
	if (!sum)
		return (unsigned)fprintf(out, "%12s ", "running");
	tool_amount(sum->own[tool_report_kind_of(report, INCSTACK__STATE_RUNNING)], "nanoseconds",
		    running, sizeof(running));
	fprintf(out, "%12s ", running);
	return WIDTH;
}

static void print_function(const struct tool_report *report,
			   const struct incstack__profile_sum *sum, uint64_t all, FILE *out)
{
	enum { WIDTH = 41 };
	const uint32_t kind = report->kind;
	struct incstack_profile_kind about = {"", ""};
	unsigned width;
	char self[32];
	char total[32];

	(void)incstack_profile_kind(report->profile, kind, &about);
	fprintf(out, "%12s %5.1f%% %12s %5.1f%% ",
		tool_amount(sum->own[kind], about.unit, self, sizeof(self)),
		share(sum->own[kind], all),
		tool_amount(sum->total[kind], about.unit, total, sizeof(total)),
		share(sum->total[kind], all));
	width = WIDTH + print_running(report, sum, out);
	fputc(' ', out);
	tool_name_clip(sum->name != NULL ? sum->name : "?",
		       report->wish->columns > width + 10 ? report->wish->columns - width : 10, '>',
		       out);
	fputc('\n', out);
}

static void print_functions(const struct tool_report *report, FILE *out)
{
	const size_t all = report->sums.count;
	const size_t count = all < report->wish->functions ? all : report->wish->functions;
	const uint64_t total = total_of(report, report->kind);
	struct incstack__profile_sum *rows = calloc(all + 1, sizeof(*rows));

	if (rows != NULL && count > 0) {
		memcpy(rows, report->sums.rows, all * sizeof(*rows));
		qsort_r(rows, all, sizeof(*rows), tool_report_by_kind, &(uint32_t){report->kind});
		fprintf(out, "\n%12s %6s %12s %6s ", "self", "", "total", "");
		print_running(report, NULL, out);
		fputs(" function\n", out);
		for (size_t i = 0; i < count; i++)
			print_function(report, &rows[i], total, out);
	}
	free(rows);
}

static const char *title_of_contexts(const struct tool_report *report)
{
	struct incstack_profile_kind about = {"", ""};

	(void)incstack_profile_kind(report->profile, report->kind, &about);
	return report->kind == 0 ? title_of(report) : report->kind == 1 ? "Samples" : about.name;
}

void tool_report_cpu(const struct tool_report *report, FILE *out)
{
	tool_report_head(report, tool_report_is_wall(report) ? "wall-clock profile" : "CPU profile",
			 out);
	print_time(report, out);
	print_states(report, out);
	print_functions(report, out);
	tool_report_contexts(report, title_of_contexts(report), report->kind, out);
}
