/* SPDX-License-Identifier: MIT
 *
 * The lists of a report: the contexts and the lines that weigh most. A kind that no list of the form has gets one in the
 * full report.
 */
#include <string.h>

#include "tool/profile_io.h"
#include "report.h"

/* Finds the kind of a section. Returns false if the user does not want to see it, or if the profile has no such kind. */
static bool is_wanted(const struct tool_report *report, const struct tool_report_section *section,
		      uint32_t *kind)
{
	if (tool_kind_number(report->profile, section->kind, kind) != TOOL_DONE)
		return false;
	if (report->wish->kind != NULL)
		return *kind == report->kind;
	return section->is_on_page || report->wish->is_full;
}

/* ---- contexts -------------------------------------------------------------------- */

static bool has_section(const struct tool_report_sections *sections, const char *kind)
{
	for (size_t i = 0; i < sections->count; i++)
		if (strcmp(sections->all[i].kind, kind) == 0)
			return true;
	return false;
}

static void print_contexts(const struct tool_report *report, FILE *out)
{
	const struct tool_report_sections *contexts = &report->form->contexts;
	struct incstack_profile_kind about;
	uint32_t kind;

	for (size_t i = 0; i < contexts->count; i++)
		if (is_wanted(report, &contexts->all[i], &kind))
			tool_report_contexts(report, contexts->all[i].title, kind, out);
	for (kind = 0; incstack_profile_kind(report->profile, kind, &about) == 0; kind++) {
		const struct tool_report_section other = {about.name, about.name, false};
		uint32_t same;

		if (!has_section(contexts, about.name) && is_wanted(report, &other, &same))
			tool_report_contexts(report, about.name, kind, out);
	}
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

static void print_places(const struct tool_places *places, const struct tool_report *report,
			 uint32_t kind, FILE *out)
{
	const unsigned columns = report->wish->columns;
	struct incstack_profile_kind about = {"", ""};
	char text[32];

	(void)incstack_profile_kind(report->profile, kind, &about);
	for (size_t i = 0; i < places->count && i < report->wish->places; i++) {
		const struct tool_place *place = &places->all[i];

		if (place->own[kind] == 0)
			break;
		fprintf(out, "%12s  ",
			tool_amount(place->own[kind], about.unit, text, sizeof(text)));
		tool_report_place(place->name, place->name_length, place->file, place->line,
				  columns - 14, out);
	}
}

static void print_lines(struct tool_places places, const struct tool_report *report,
			const struct tool_report_section *section, FILE *out)
{
	uint32_t kind;

	if (!is_wanted(report, section, &kind))
		return;
	tool_places_sort(&places, kind);
	if (places.count == 0 || places.all[0].own[kind] == 0 || report->wish->places == 0 ||
	    (!report->wish->is_full && !has_line(&places, report->wish->places)))
		return;
	fprintf(out, "\n%s\n", section->title);
	print_places(&places, report, kind, out);
}

void tool_report_sections(const struct tool_report *report, FILE *out)
{
	print_contexts(report, out);
	for (size_t i = 0; i < report->form->lines.count; i++)
		print_lines(report->places, report, &report->form->lines.all[i], out);
}
