/* SPDX-License-Identifier: MIT
 *
 * The report on a heap profile for the terminal: totals, the functions that allocate most, the contexts
 * and lines that matter most, sizes and threads. It is made from the profile, from which the other formats are made,
 * too.
 */
#include <inttypes.h>

#include "tool/names.h"
#include "tool/profile_io.h"
#include "report.h"

/* The contexts that are shown, by kind. A page has room for those that answer most questions. */
static const struct section {
	const char *kind;
	const char *title;
	bool is_on_page;
} contexts[] = {
	{"live at peak", "Live at the peak", true},
	{"live at exit", "Still live at exit", true},
	{"resident", "Live and resident", true},
	{"swapped", "Live and swapped out", true},
	{"allocated", "Allocated", false},
	{"allocations", "Allocations", false},
	{"temporary", "Temporary allocations", false},
};

/* The kinds by which lines are ordered. */
static const struct section lines[] = {
	{"live at exit", "Still live at exit, by line", true},
	{"temporary", "Temporary allocations, by line", true},
	{"allocated", "Allocated, by line", false},
};

/* Whether the user wants to see a section. *kind becomes the number of its kind. */
static bool is_wanted(const struct tool_report *report, const struct section *section,
		      uint32_t *kind)
{
	if (tool_kind_number(report->profile, section->kind, kind) != TOOL_DONE)
		return false;
	if (report->wish->kind != NULL)
		return *kind == report->kind;
	return section->is_on_page || report->wish->is_full;
}

/* ---- lines ----------------------------------------------------------------------- */

/* Whether any of the first places has a line. If not, the table of functions says as much. */
static bool has_line(const struct tool_places *places, size_t most)
{
	for (size_t i = 0; i < places->count && i < most; i++)
		if (places->all[i].line > 0)
			return true;
	return false;
}

static void print_lines(struct tool_places places, const struct tool_report *report,
			const struct section *section, FILE *out)
{
	const unsigned columns = report->wish->columns;
	struct incstack_profile_kind about = {"", ""};
	uint32_t kind;
	char text[32];

	if (!is_wanted(report, section, &kind))
		return;
	(void)incstack_profile_kind(report->profile, kind, &about);
	tool_places_sort(&places, kind);
	if (places.count == 0 || places.all[0].own[kind] == 0 || report->wish->places == 0 ||
	    (!report->wish->is_full && !has_line(&places, report->wish->places)))
		return;
	fprintf(out, "\n%s\n", section->title);
	for (size_t i = 0; i < places.count && i < report->wish->places; i++) {
		const struct tool_place *place = &places.all[i];

		if (place->own[kind] == 0)
			break;
		fprintf(out, "%12s  ",
			tool_amount(place->own[kind], about.unit, text, sizeof(text)));
		tool_report_place(place->name, place->name_length, place->file, place->line,
				  columns - 14, out);
	}
}

/* ---- all of it ------------------------------------------------------------------- */

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
}

static void print_contexts(const struct tool_report *report, FILE *out)
{
	for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
		uint32_t kind;

		if (is_wanted(report, &contexts[i], &kind))
			tool_report_contexts(report, contexts[i].title, kind, out);
	}
}

void tool_report_heap(const struct tool_report *report, FILE *out)
{
	tool_report_head(report, "Heap profile", out);
	print_totals(report, out);
	tool_report_memory(report, out);
	tool_report_resident(report, out);
	if (tool_report_is_attached(report))
		tool_report_ticks(report, out);
	tool_report_functions(report, out);
	print_contexts(report, out);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		print_lines(report->places, report, &lines[i], out);
	tool_report_sizes(report, out);
	tool_report_threads(report, out);
}
