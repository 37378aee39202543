/* SPDX-License-Identifier: MIT
 *
 * What is special about the reports on profiles of CPU time and of wall-clock time: how well the program was sampled.
 */
#include <inttypes.h>

#include "tool/profile_io.h"
#include "report.h"

static const struct tool_report_section contexts[] = {
	{"CPU time", "CPU time", true},
	{"wall-clock time", "wall-clock time", true},
	{"samples", "Samples", false},
};

static const struct tool_report_section lines[] = {
	{"CPU time", "CPU time, by line", true},
	{"wall-clock time", "wall-clock time, by line", true},
};

/* The kernel runs a timer of CPU time at its own clock's ticks, so a program that used two intervals may end before. */
static const char *why_empty(const struct tool_report *report)
{
	enum { INTERVALS = 10 };
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const uint64_t interval = report->replay->interval;

	if (interval > 0 && totals->tally.cpu_ns / INTERVALS > interval &&
	    totals->tally.cpu_ns > UINT64_C(100000000))
		return "no sample was taken, although the program used CPU time: the kernel did "
		       "not run its timers "
		       "(seen with Linux 6.18 after an exec); record it again";
	return "no sample was taken; did the program use less CPU time than an interval?";
}

static void print_sampled(const struct tool_report *report, const char *what, FILE *out)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	char used[32];
	char clock[32];

	fprintf(out, "%s of %s were sampled; the clocks of the threads say %s\n",
		tool_amount(report->replay->bytes, "nanoseconds", used, sizeof(used)), what,
		tool_amount(totals->tally.cpu_ns, "nanoseconds", clock, sizeof(clock)));
}

/* The kernel says when a thread waits, so wall-clock time has no interval of its own. */
static void print_interval(const struct tool_report *report, FILE *out)
{
	const struct tool_ticks all =
		tool_ticks_of(incstack__tracefile_reader_totals(report->reader)->tally.ticks);
	const uint64_t signals = all.expected - all.merged;
	const uint64_t asked = report->replay->interval;
	char wanted[32];
	char reached[32];

	if (signals > 0)
		fprintf(out, "one sample every %s on average; requested: %s\n",
			tool_amount(all.expected * asked / signals, "nanoseconds", reached,
				    sizeof(reached)),
			tool_amount(asked, "nanoseconds", wanted, sizeof(wanted)));
}

static void print_failed_calls(const struct tool_report *report, FILE *out)
{
	const uint64_t failed = incstack__tracefile_reader_totals(report->reader)->failed_calls;

	if (failed > 0)
		fprintf(out,
			"%" PRIu64 " system calls of the program returned EINTR because a tick "
			"interrupted them\n",
			failed);
}

static void print_cpu(const struct tool_report *report, FILE *out)
{
	print_sampled(report, "CPU time", out);
	print_interval(report, out);
	tool_report_ticks(report, out);
	print_failed_calls(report, out);
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

	for (uint32_t i = 0; i < INCSTACK__STATES && all > 0; i++) {
		const uint64_t time = total_of(report, tool_report_kind_of(report, i));

		if (time > 0)
			fprintf(out, "%12s %5.1f%%  %s\n",
				tool_amount(time, "nanoseconds", amount, sizeof(amount)),
				100.0 * (double)time / (double)all, incstack__state_name(i));
	}
}

static void print_wall(const struct tool_report *report, FILE *out)
{
	print_sampled(report, "wall-clock time", out);
	print_states(report, out);
	tool_report_ticks(report, out);
	print_failed_calls(report, out);
}

/* What both have. */
/* clang-format off */
#define OF_TIME \
	.event = "sample", \
	.dropped = "ticks", \
	.expected = "ticks", \
	.unit = "nanoseconds", \
	.weight = "time", \
	.weight_name = "nanoseconds", \
	.calls = "samples", \
	.calls_name = "samples", \
	.has_time = true, \
	.shows_callers = true, \
	.contexts = {contexts, sizeof(contexts) / sizeof(contexts[0])}, \
	.lines = {lines, sizeof(lines) / sizeof(lines[0])}, \
	.why_empty = why_empty
/* clang-format on */

const struct tool_report_form tool_report_cpu = {
	.name = "cpu", .title = "CPU profile", .print_totals = print_cpu, OF_TIME};

const struct tool_report_form tool_report_wall = {.name = "wall",
						  .has_states = true,
						  .title = "wall-clock profile",
						  .print_totals = print_wall,
						  OF_TIME};
