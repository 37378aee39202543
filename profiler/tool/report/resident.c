/* SPDX-License-Identifier: MIT
 *
 * Reports which memory was resident when somebody looked: of the live blocks, of the allocator, and of everything else,
 * so that the rows add up to what the kernel counts. This answers whether memory is leaked or kept by the allocator, and
 * whether it is in memory at all.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "tool/profile_io.h"
#include "report.h"
#include "profile/nodes.h"

/* Smaller amounts need no answer. */
#define LEAST (UINT64_C(1) << 20)

static const char *amount_of(uint64_t amount, char text[32])
{
	return tool_amount(amount, "bytes", text, 32);
}

static void print_row(uint64_t amount, const char *what, FILE *out)
{
	char text[32];

	fprintf(out, "%12s  %s\n", amount_of(amount, text), what);
}

static void print_title(const struct incstack__moment_head *head, FILE *out)
{
	const time_t seconds = (time_t)(head->time_ns / 1000000000u);
	struct tm time;
	char text[32] = "";

	if (head->flags & INCSTACK__MOMENT_OF_END) {
		fputs("\nResident memory when the recording ended\n", out);
		return;
	}
	if (gmtime_r(&seconds, &time) != NULL)
		strftime(text, sizeof(text), "%F %T", &time);
	fprintf(out,
		"\nResident memory at %s UTC; to look took %.1f ms, in which %" PRIu64
		" allocations were made\n",
		text, (double)head->took_ns / 1e6, head->calls);
}

/* Whether all live blocks are known: of sampled ones most are not, and of a process that ran before, the older ones. */
static bool knows_all(const struct tool_report *report)
{
	return report->replay->interval <= 1 && !tool_report_is_attached(report);
}

/* What malloc has beside the live blocks that are known. */
static void print_allocator(const struct tool_report *report, const struct incstack__resident *r,
			    FILE *out)
{
	const uint64_t rest = r->rest[INCSTACK__OWNER_ALLOCATOR];
	const uint64_t beside = r->shared < rest ? r->shared : rest;
	const char *what = tool_report_is_attached(report)
				   ? "in blocks from before the recording, or kept by the allocator"
				   : "kept by the allocator";
	char held[32];
	char text[32];
	char free[32];

	fprintf(out, "%12s  %s, which holds %s of addresses\n", amount_of(rest, text), what,
		amount_of(r->held, held));
	if (knows_all(report))
		fprintf(out,
			"%12s  of it, %s beside live blocks on their pages (fragmented), %s on "
			"pages without (free)\n",
			"", amount_of(beside, text), amount_of(rest - beside, free));
}

/* The live blocks: their resident bytes, and why there are not more. */
static void print_live(const struct incstack__resident *r, FILE *out)
{
	char live[32];
	char text[32];

	fprintf(out, "%12s  live blocks, of %s requested", amount_of(r->live, live),
		amount_of(r->requested, text));
	if (r->live_swapped > 0)
		fprintf(out, "; %s are swapped out", amount_of(r->live_swapped, text));
	fputc('\n', out);
}

static uint64_t swapped_of(const struct incstack__resident *r)
{
	uint64_t sum = r->live_swapped;

	for (int owner = 0; owner < INCSTACK__OWNERS; owner++)
		sum += r->rest_swapped[owner];
	return sum;
}

/* The sum, and what the kernel counts. It does not count pages that were only read. */
static void print_sum(const struct incstack__resident *r, const struct incstack__moment_head *head,
		      FILE *out)
{
	char text[32];

	fprintf(out, "%12s  anonymous memory in all", amount_of(r->anonymous, text));
	if (head->resident > 0)
		fprintf(out, "; the kernel counts %s", amount_of(head->anonymous, text));
	fputc('\n', out);
	if (r->common > 0)
		fprintf(out,
			"%12s  of it, %s that were only read (all zero) or are shared with a "
			"forked process\n",
			"", amount_of(r->common, text));
	if (head->lazy > 0)
		fprintf(out, "%12s  of it, %s that the system may take (MADV_FREE)\n", "",
			amount_of(head->lazy, text));
	if (swapped_of(r) > 0)
		print_row(swapped_of(r), "more are swapped out", out);
	print_row(r->file, "of files and shared memory, which are not in the sum", out);
}

/* Says whether malloc's memory is leaked, or kept by the allocator. */
static void print_verdict(const struct incstack__resident *r, bool knows_all, FILE *out)
{
	const uint64_t rest = r->rest[INCSTACK__OWNER_ALLOCATOR];
	const char *why = !knows_all             ? ""
			  : r->shared > rest / 2 ? ": live blocks hold its pages"
						 : ": no live block is on its pages";

	if (rest > r->live)
		fprintf(out,
			"most of malloc's resident memory is kept by the allocator, not leaked%s\n",
			why);
	else
		fputs("most of malloc's resident memory is in live blocks: if it is too much, they "
		      "are leaked or needed\n",
		      out);
}

/* Says what the numbers mean. */
static void print_answer(const struct tool_report *report, const struct incstack__resident *r,
			 FILE *out)
{
	const uint64_t there = r->live + r->live_swapped;
	char text[32];

	if (r->requested >= LEAST && r->requested - there > r->requested / 4)
		fprintf(out,
			"%s of the live blocks (%.1f%%) are not in memory: never touched, or given "
			"back\n",
			amount_of(r->requested - there, text),
			100.0 * (double)(r->requested - there) / (double)r->requested);
	if (r->held_pages >= LEAST && !tool_report_is_attached(report))
		print_verdict(r, knows_all(report), out);
}

/* ---- live blocks that are not in memory ------------------------------------------------------- */

struct kinds {
	uint32_t live, resident, swapped;
	bool has_swapped;
};

static uint64_t absent_of(const struct tool_report *report, const struct kinds *kinds,
			  uint32_t node)
{
	const uint64_t live = incstack__profile_self(report->profile, node, kinds->live);
	uint64_t there = incstack__profile_self(report->profile, node, kinds->resident);

	if (kinds->has_swapped)
		there += incstack__profile_self(report->profile, node, kinds->swapped);
	return live > there ? live - there : 0;
}

/* Returns the context with the most below `most`, or the first context after `after` that has as much. */
static uint32_t next_absent(const struct tool_report *report, const struct kinds *kinds,
			    uint64_t most, uint32_t after)
{
	const uint32_t count = incstack_profile_nodes(report->profile);
	uint32_t best = 0;
	uint64_t amount = LEAST - 1;

	for (uint32_t i = 1; i < count; i++) {
		const uint64_t absent = absent_of(report, kinds, i);

		if (absent > amount && (absent < most || (absent == most && i > after))) {
			amount = absent;
			best = i;
		}
	}
	return best;
}

/* The contexts whose live blocks are to the largest part not in memory. */
static void print_absent(const struct tool_report *report, FILE *out)
{
	enum { SHOWN = 3 };
	uint64_t most = UINT64_MAX;
	uint32_t node = 0;
	struct kinds kinds;
	char text[32];

	if (tool_kind_number(report->profile, "live at exit", &kinds.live) != TOOL_DONE ||
	    tool_kind_number(report->profile, "resident", &kinds.resident) != TOOL_DONE)
		return;
	kinds.has_swapped =
		tool_kind_number(report->profile, "swapped", &kinds.swapped) == TOOL_DONE;
	for (int i = 0; i < SHOWN; i++) {
		node = next_absent(report, &kinds, most, node);
		if (node == 0)
			return;
		most = absent_of(report, &kinds, node);
		if (i == 0)
			fputs("\nLive, but not in memory\n", out);
		fprintf(out, "%12s %6s ", amount_of(most, text), "");
		tool_report_context(report, node, out);
	}
}

void tool_report_resident(const struct tool_report *report, FILE *out)
{
	const struct incstack__moment *moment = incstack__tracefile_reader_moment(report->reader);
	const struct incstack__resident *r = &report->replay->resident;

	if (r->resident == NULL)
		return;
	print_title(&moment->head, out);
	print_live(r, out);
	print_allocator(report, r, out);
	print_row(r->rest[INCSTACK__OWNER_STACKS], "stacks", out);
	print_row(r->rest[INCSTACK__OWNER_FILES], "written data of the program and its libraries",
		  out);
	print_row(r->rest[INCSTACK__OWNER_OTHER],
		  "other mappings: of the program or its runtime, and of the recorder", out);
	print_sum(r, &moment->head, out);
	if (r->outside > 0)
		print_row(r->outside,
			  "of live blocks lie in no mapping: their release was not seen", out);
	if (moment->head.flags & INCSTACK__MOMENT_PARTIAL)
		fputs("warning: there are more pages than were looked at; what they have is "
		      "missing in these numbers\n",
		      out);
	print_answer(report, r, out);
	print_absent(report, out);
}
