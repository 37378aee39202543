/* SPDX-License-Identifier: MIT
 *
 * Prints the last line of a report, and computes the numbers that it shares with the text.
 */
#include <inttypes.h>

#include "report.h"

uint64_t tool_report_lost(const struct incstack__trace_totals *totals)
{
	if (totals->started == 0)
		return totals->tally.lost;
	return totals->started > totals->traces ? totals->started - totals->traces : 0;
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
	incstack__trace_count(&sum->traces, one->traces);
	incstack__trace_count(&sum->crosschecked, one->crosschecked);
	incstack__trace_count(&sum->mismatches, one->mismatches);
	incstack__trace_count(&sum->lost, one->lost);
	incstack__trace_count(&sum->truncated, one->truncated);
	incstack__trace_count(&sum->returns, one->returns);
	incstack__trace_count(&sum->stale, one->stale);
	incstack__trace_count(&sum->depth_sum, one->depth_sum);
	incstack__trace_count(&sum->popped_sum, one->popped_sum);
	incstack__trace_count(&sum->popped_count, one->popped_count);
	incstack__trace_count(&sum->bytes, one->bytes);
}

static double mean(uint64_t total, uint64_t count)
{
	return count == 0 ? 0.0 : (double)total / (double)count;
}

void tool_sum_print(const struct tool_sum *sum, FILE *out)
{
	fprintf(out,
		"incstack: traces=%" PRIu64 " crosschecked=%" PRIu64 " mismatches=%" PRIu64
		" lost=%" PRIu64 " truncated=%" PRIu64 " returns=%" PRIu64 " stale=%" PRIu64
		" mode=%s depth_mean=%.2f popped_mean=%.2f\n",
		sum->traces, sum->crosschecked, sum->mismatches, sum->lost, sum->truncated,
		sum->returns, sum->stale, tool_mode_name(sum->mode),
		mean(sum->depth_sum, sum->traces), mean(sum->popped_sum, sum->popped_count));
}
