/* SPDX-License-Identifier: MIT
 *
 * Prints the last line of a report, or the last two lines for a CPU profile and for -p, and
 * computes the numbers that it shares with the text.
 */
#include <inttypes.h>

#include "tracefile/notes.h"
#include "report.h"

int tool_report_is_cpu(const struct tool_report *report)
{
	return incstack__tracefile_reader_header(report->reader)->kind ==
	       INCSTACK__TRACEFILE_OF_CPU;
}

int tool_report_is_attached(const struct tool_report *report)
{
	return incstack__tracefile_has_note(incstack__tracefile_reader_totals(report->reader),
					    INCSTACK__NOTE_ATTACHED);
}

int tool_report_is_wall(const struct tool_report *report)
{
	return report->form->has_states;
}

uint32_t tool_report_kind_of(const struct tool_report *report, enum incstack__state state)
{
	return report->form->has_states ? (uint32_t)TOOL_KIND_STATES + state : 0;
}

/* The lost samples are those that were started, or that the recorder refused, and that have no
 * trace in the file. */
uint64_t tool_report_lost(const struct incstack__tracefile_totals *totals)
{
	if (totals->started == 0)
		return totals->tally.lost;
	return totals->started > totals->traces ? totals->started - totals->traces : 0;
}

int tool_report_has_stopped(const struct incstack__tracefile_totals *totals)
{
	static const enum incstack__tracefile_note notes[] = {
		INCSTACK__NOTE_FILE_CLOSED,  INCSTACK__NOTE_FILE_FULL,
		INCSTACK__NOTE_FILE_LIMIT,   INCSTACK__NOTE_FILE_QUOTA,
		INCSTACK__NOTE_FILE_ERROR,   INCSTACK__NOTE_NO_DESCRIPTOR,
		INCSTACK__NOTE_SECCOMP,      INCSTACK__NOTE_NOT_STARTED,
		INCSTACK__NOTE_NO_LIBUNWIND,
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (incstack__tracefile_has_note(totals, notes[i]))
			return 1;
	return 0;
}

const char *tool_mode_name(uint32_t mode)
{
	static const char *const names[] = {"patch", "validate", "full"};

	return mode < 3 ? names[mode] : "unknown";
}

void tool_sum_add(struct tool_sum *sum, const struct tool_sum *one)
{
	if (one->mode_traces >= sum->mode_traces) {
		sum->mode_traces = one->mode_traces;
		sum->mode = one->mode;
	}
	incstack__tracefile_count(&sum->traces, one->traces);
	incstack__tracefile_count(&sum->crosschecked, one->crosschecked);
	incstack__tracefile_count(&sum->mismatches, one->mismatches);
	incstack__tracefile_count(&sum->lost, one->lost);
	incstack__tracefile_count(&sum->truncated, one->truncated);
	incstack__tracefile_count(&sum->returns, one->returns);
	incstack__tracefile_count(&sum->stale, one->stale);
	incstack__tracefile_count(&sum->depth_sum, one->depth_sum);
	incstack__tracefile_count(&sum->popped_sum, one->popped_sum);
	incstack__tracefile_count(&sum->popped_count, one->popped_count);
	incstack__tracefile_count(&sum->bytes, one->bytes);
	sum->has_time |= one->has_time;
	sum->has_ticks |= one->has_ticks;
	incstack__tracefile_count(&sum->cpu_ns, one->cpu_ns);
	for (int i = 0; i < INCSTACK__TICKS; i++)
		incstack__tracefile_count(&sum->ticks[i], one->ticks[i]);
}

struct tool_ticks tool_ticks_of(const uint64_t ticks[INCSTACK__TICKS])
{
	struct tool_ticks all = {0};

	for (int i = 0; i < INCSTACK__TICKS; i++) {
		incstack__tracefile_count(&all.expected, ticks[i]);
		if (i >= INCSTACK__TICK_MERGED_FIRST)
			incstack__tracefile_count(&all.merged, ticks[i]);
		else if (i >= INCSTACK__TICK_FAILED_FIRST)
			incstack__tracefile_count(&all.failed, ticks[i]);
	}
	return all;
}

static void print_ticks(const struct tool_sum *sum, FILE *out)
{
	const struct tool_ticks all = tool_ticks_of(sum->ticks);
	const uint64_t signals = all.expected - all.merged;

	fprintf(out,
		"incstack: expected=%" PRIu64 " taken=%" PRIu64 " queued=%" PRIu64
		" failed=%" PRIu64 " merged=%" PRIu64,
		all.expected, sum->ticks[INCSTACK__TICK_TAKEN], sum->ticks[INCSTACK__TICK_QUEUED],
		all.failed, all.merged);
	if (sum->has_time)
		fprintf(out, " reached_ns=%" PRIu64, signals > 0 ? sum->cpu_ns / signals : 0);
	fputc('\n', out);
}

static double mean(uint64_t total, uint64_t count)
{
	return count == 0 ? 0.0 : (double)total / (double)count;
}

void tool_sum_print(const struct tool_sum *sum, FILE *out)
{
	if (sum->has_ticks)
		print_ticks(sum, out);
	fprintf(out,
		"incstack: traces=%" PRIu64 " crosschecked=%" PRIu64 " mismatches=%" PRIu64
		" lost=%" PRIu64 " truncated=%" PRIu64 " returns=%" PRIu64 " stale=%" PRIu64
		" mode=%s depth_mean=%.2f popped_mean=%.2f\n",
		sum->traces, sum->crosschecked, sum->mismatches, sum->lost, sum->truncated,
		sum->returns, sum->stale, tool_mode_name(sum->mode),
		mean(sum->depth_sum, sum->traces), mean(sum->popped_sum, sum->popped_count));
}
