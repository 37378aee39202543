/* SPDX-License-Identifier: MIT
 *
 * Prints the parts of the report for the terminal that do not depend on what was recorded: what is
 * wrong with the file, how the process ended, and the most important contexts.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tracefile/notes.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "groups.h"
#include "report.h"

int tool_report_wants(const struct tool_report *report, uint32_t kind)
{
	return report->wish->kind == NULL || kind == report->kind;
}

static void print_group(const struct tool_report *report, const struct tool_group *group,
			uint64_t total, const char *unit, FILE *out)
{
	char text[32];

	fprintf(out, "%12s %5.1f%% ", tool_amount(group->weight, unit, text, sizeof(text)),
		100.0 * (double)group->weight / (double)total);
	tool_report_context(report, group->node, out);
	if (group->count > 1)
		fprintf(out,
			"%20sand %" PRIu32 " more, which differ in the depth of the recursion\n",
			"", group->count - 1);
}

void tool_report_contexts(const struct tool_report *report, const char *title, uint32_t kind,
			  FILE *out)
{
	const size_t most = tool_report_contexts_most(report);
	struct incstack_profile_kind about = {"", ""};
	struct tool_groups groups;
	char text[32];

	(void)incstack_profile_kind(report->profile, kind, &about);
	if (!tool_report_wants(report, kind) || most == 0 ||
	    tool_groups_find(report->profile, kind, &groups) != 0)
		return;
	if (groups.count > 0)
		fprintf(out, "\n%s: %s, hottest contexts\n", title,
			tool_amount(groups.total, about.unit, text, sizeof(text)));
	for (size_t i = 0; i < groups.count && i < most; i++)
		print_group(report, &groups.all[i], groups.total, about.unit, out);
	free(groups.all);
}

static void print_notes(uint64_t notes, FILE *out)
{
	for (unsigned note = 0; note < 64; note++)
		if (notes >> note & 1 && incstack__tracefile_note_text(note) != NULL)
			fprintf(out, "note: %s\n", incstack__tracefile_note_text(note));
}

static void print_lost(const struct incstack__tracefile_totals *totals, FILE *out)
{
	const uint64_t lost = tool_report_lost(totals);
	const uint64_t in_return = totals->in_return < lost ? totals->in_return : lost;
	const char *why = "their events were left by a jump, interrupted another event, or had a "
			  "misaligned stack";

	if (tool_report_has_stopped(totals))
		why = "recording had stopped (see the note)";
	else if (incstack__tracefile_has_note(totals, INCSTACK__NOTE_NO_MEMORY))
		why = "there was no memory for them (see the note)";
	else if (!(totals->tally.flags & INCSTACK__TRACEFILE_TALLY_PROCESS))
		why = "the process ended in the middle of them, or before they were written";
	if (in_return > 0)
		fprintf(out,
			"warning: %" PRIu64
			" traces of allocations in signal handlers are lost: the signal came while "
			"the recorder handled a return of the program\n",
			in_return);
	if (lost > in_return)
		fprintf(out, "warning: %" PRIu64 " traces are lost: %s\n", lost - in_return, why);
}

static void print_dropped(const struct tool_report *report, FILE *out)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const char *why = "there was no memory for them";

	if (tool_report_is_attached(report)) {
		fprintf(out,
			"warning: %" PRIu64 " deallocations were not seen, because the tool could "
			"not keep up with them; their blocks look live\n",
			totals->tally.events_dropped);
		return;
	}
	if (incstack__tracefile_has_note(totals, INCSTACK__NOTE_SMALL_STACK))
		why = incstack__tracefile_has_note(totals, INCSTACK__NOTE_NO_MEMORY)
			      ? "a stack was nearly used up, or there was no memory (see the notes)"
			      : "a stack was nearly used up (see the note)";
	fprintf(out, "warning: %" PRIu64 " %s were dropped: %s\n", totals->tally.events_dropped,
		report->form->dropped, why);
}

static void print_empty(const struct tool_report *report, FILE *out)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const char *why = report->form->why_empty(report);

	if (!incstack__tracefile_has_note(totals, INCSTACK__NOTE_NOT_STARTED) &&
	    !incstack__tracefile_has_note(totals, INCSTACK__NOTE_NO_LIBUNWIND))
		fprintf(out, "warning: %s\n", why);
	/* or else the note says why */
}

static void print_damage(const struct tool_report *report, FILE *out)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const struct incstack__tracefile_problem problem =
		incstack__tracefile_reader_problem(report->reader);

	if (totals->damaged_slots > 0)
		fprintf(out,
			"warning: the counters of %" PRIu64 " threads are inconsistent (did two "
			"runs write to this file?); it is unknown how many traces are lost\n",
			totals->damaged_slots);
	if (problem.what != NULL && problem.offset >= INCSTACK__TRACEFILE_START)
		fprintf(out, "warning: damaged at byte %" PRIu64 ": %s; read up to there\n",
			problem.offset, problem.what);
	if (totals->truncated_bytes > 0)
		fprintf(out,
			"warning: the file is cut off: its last %" PRIu64
			" bytes are no whole block\n",
			totals->truncated_bytes);
	if (totals->tally.events_dropped > 0)
		print_dropped(report, out);
	if (totals->gaps > 0)
		fprintf(out,
			"warning: %" PRIu64 " times callers had not been walked when the program "
			"ended\n",
			totals->gaps);
	if (tool_report_lost(totals) > 0)
		print_lost(totals, out);
	if (totals->truncated > 0)
		fprintf(out,
			"warning: the callers of %" PRIu64
			" frames are unknown: their code has no unwind rules, was left without "
			"a return, or there was no room for the callers\n",
			totals->truncated);
	if (totals->interrupting > 0)
		fprintf(out,
			"warning: %" PRIu64
			" allocations and deallocations in signal handlers that interrupted "
			"another event, or a return that the recorder watched, are missing\n",
			totals->interrupting);
	if (totals->tally.samples == 0 && totals->started == 0)
		print_empty(report, out);
}

/* Mode validate compares every known frame at each sample. */
static void print_deep(const struct tool_report *report, FILE *out)
{
	enum { DEEP = 10000 };
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const double depth = incstack__replay_depth_mean(report->replay);

	if (totals->tally.mode == INCSTACK_MODE_VALIDATE && depth >= DEEP)
		fprintf(out,
			"note: mode validate compared some %.0f frames for each trace, which made "
			"the recording slow\n",
			depth);
}

void tool_report_head(const struct tool_report *report, const char *title, FILE *out)
{
	const unsigned columns = report->wish->columns;
	const struct incstack__replay *replay = report->replay;
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);

	fprintf(out, "%s of: ", title);
	tool_name_clip(incstack__tracefile_reader_header(report->reader)->command,
		       columns > 40 ? columns - 17 : 23, '>', out);
	fputc('\n', out);
	print_damage(report, out);
	tool_report_end(report, out);
	print_notes(totals->notes, out);
	tool_report_pointers(report, out);
	print_deep(report, out);
	fprintf(out,
		"%" PRIu64 " trace%s of %" PRIu64 " thread%s, %u contexts, %.1f frames deep on "
		"average\n",
		totals->traces, totals->traces == 1 ? "" : "s", totals->threads,
		totals->threads == 1 ? "" : "s", replay->cct.count - 1,
		incstack__replay_depth_mean(replay));
	if (totals->tally.crosschecked > 0)
		fprintf(out,
			"%" PRIu64 " traces were compared with full walks, %" PRIu64
			" of them by libunwind; %" PRIu64 " differ\n",
			totals->tally.crosschecked, totals->unwound, totals->tally.mismatches);
}
