/* SPDX-License-Identifier: MIT
 *
 * Chooses the form of a report, and prints the report for people. It is made from the profile, from which the other
 * formats are made, too.
 */
#include "tracefile/notes.h"
#include "report.h"

/* Whether the kernel has reported waits, or the recorder has measured calls. */
static bool is_wall(const struct incstack__tracefile_reader *reader)
{
	const struct incstack__tracefile_totals *totals = incstack__tracefile_reader_totals(reader);

	return incstack__tracefile_has_note(totals, INCSTACK__NOTE_WALL) ||
	       incstack__tracefile_has_note(totals, INCSTACK__NOTE_WALL_CALLS);
}

const struct tool_report_form *tool_report_form_of(const struct incstack__tracefile_reader *reader)
{
	if (is_wall(reader))
		return &tool_report_wall;
	return incstack__tracefile_reader_header(reader)->kind == INCSTACK__TRACEFILE_OF_CPU
		       ? &tool_report_cpu
		       : &tool_report_heap;
}

void tool_report_print(const struct tool_report *report, FILE *out)
{
	tool_report_head(report, report->form->title, out);
	report->form->print_totals(report, out);
	tool_report_functions(report, out);
	tool_report_sections(report, out);
	if (report->form->has_memory)
		tool_report_sizes(report, out);
	tool_report_threads(report, out);
}
