/* SPDX-License-Identifier: MIT
 *
 * Prints how much each thread allocated, and how many allocations had which size.
 */
#include "tracefile/shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/names.h"
#include "tool/profile_io.h"
#include "report.h"

/* ---- threads --------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
	const struct incstack__share_of_thread *left = a;
	const struct incstack__share_of_thread *right = b;

	if (left->bytes != right->bytes)
		return left->bytes < right->bytes ? 1 : -1;
	return left->number < right->number ? -1 : left->number > right->number;
}

static void print_thread(const struct tool_report *report,
			 const struct incstack__share_of_thread *share, FILE *out)
{
	const struct incstack__tracefile_thread *thread =
		incstack__tracefile_reader_thread(report->reader, share->number);
	char amount[32];

	fprintf(out, "%12s %10" PRIu64,
		tool_amount(share->bytes, report->form->unit, amount, sizeof(amount)),
		share->calls);
	if (report->form->has_memory)
		fprintf(out, " %12s", tool_amount(share->live, "bytes", amount, sizeof(amount)));
	fprintf(out, " %8" PRIu64 "  ", thread != NULL ? thread->tid : 0);
	tool_name_clip(thread != NULL && thread->name[0] != 0 ? thread->name : "?",
		       report->wish->columns - 48, '>', out);
	fputc('\n', out);
}

static void print_threads(const struct tool_report *report,
			  const struct incstack__share_of_thread *threads, size_t count, FILE *out)
{
	const size_t shown = count < report->wish->threads ? count : report->wish->threads;

	fprintf(out, "\n%12s %10s", report->form->weight, report->form->calls);
	if (report->form->has_memory)
		fprintf(out, " %12s", "live at exit");
	fprintf(out, " %8s  %s\n", "tid", "thread");
	for (size_t i = 0; i < shown; i++)
		print_thread(report, &threads[i], out);
	if (count > shown)
		fprintf(out, "%12s %zu more\n", "...", count - shown);
}

void tool_report_threads(const struct tool_report *report, FILE *out)
{
	const struct incstack__shares *shares = &report->replay->shares;
	const size_t count = shares->thread_count;
	struct incstack__share_of_thread *threads = calloc(count + 1, sizeof(*threads));

	if (threads != NULL && count > 0 && report->wish->threads > 0 &&
	    (count > 1 || report->wish->is_full)) {
		memcpy(threads, shares->threads, count * sizeof(*threads));
		qsort(threads, count, sizeof(*threads), by_bytes);
		print_threads(report, threads, count, out);
	}
	free(threads);
}

/* ---- sizes ----------------------------------------------------------------------- */

/* Classes that share a line of a page. In the full report each class has a line. */
struct range {
	unsigned first, last;
};

static void print_range(const struct tool_report *report, struct range range, FILE *out)
{
	enum { BEFORE = 48, BAR = 30 };
	static const char bar[] = "##############################";
	const struct incstack__share_of_size *sizes = report->replay->shares.sizes;
	const uint64_t calls = report->replay->calls;
	const unsigned columns = report->wish->columns;
	const unsigned room = columns < BEFORE + BAR ? columns - BEFORE : BAR;
	struct incstack__share_of_size sum = {0};
	char to[32];
	char bytes[32];
	double share;

	for (unsigned i = range.first; i <= range.last; i++) {
		sum.calls += sizes[i].calls;
		sum.bytes += sizes[i].bytes;
	}
	if (sum.calls == 0)
		return;
	share = (double)sum.calls / (double)calls;
	if (range.last + 1 < INCSTACK__SHARES_SIZES)
		snprintf(to, sizeof(to), "below %s",
			 tool_amount(UINT64_C(1) << range.last, "bytes", bytes, sizeof(bytes)));
	else
		snprintf(to, sizeof(to), "larger");
	fprintf(out, "%15s %10" PRIu64 " %5.1f%% %12s  %.*s\n", to, sum.calls, 100 * share,
		tool_amount(sum.bytes, "bytes", bytes, sizeof(bytes)), (int)(share * room + 0.5),
		bar);
}

void tool_report_sizes(const struct tool_report *report, FILE *out)
{
	static const struct range page[] = {{0, 5},   {6, 7},   {8, 10},
					    {11, 16}, {17, 20}, {21, INCSTACK__SHARES_SIZES - 1}};

	if (report->replay->calls == 0)
		return;
	fprintf(out, "\n%15s %10s %6s %12s\n", "size", "calls", "", "allocated");
	if (report->wish->is_full)
		for (unsigned i = 0; i < INCSTACK__SHARES_SIZES; i++)
			print_range(report, (struct range){i, i}, out);
	else
		for (size_t i = 0; i < sizeof(page) / sizeof(page[0]); i++)
			print_range(report, page[i], out);
}
