/* SPDX-License-Identifier: MIT
 *
 * Compares what malloc handed out with the memory of the process, so that nobody takes the first for the second.
 */
#include <string.h>

#include "tracefile/notes.h"
#include "tool/profile_io.h"
#include "report.h"

/* Interpreters whose own allocators take large blocks from the system and hide the objects in them. */
static const struct {
	const char *program; /* the begin of its name */
	const char *hint;
} interpreters[] = {
	{"python", "Python keeps small objects where malloc does not see them, unless "
		   "PYTHONMALLOC=malloc is set"},
	{"php", "PHP keeps objects where malloc does not see them, unless "
		"USE_ZEND_ALLOC=0 is set"},
};

const char *tool_report_hint(const struct tool_report *report)
{
	const char *command = incstack__tracefile_reader_header(report->reader)->command;
	const size_t length = strcspn(command, " ");
	const char *slash = memrchr(command, '/', length);
	const char *name = slash != NULL ? slash + 1 : command;

	if (!report->form->has_memory ||
	    incstack__tracefile_has_note(incstack__tracefile_reader_totals(report->reader),
					 INCSTACK__NOTE_ALL_BY_MALLOC))
		return NULL;
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++)
		if (strncmp(name, interpreters[i].program, strlen(interpreters[i].program)) == 0)
			return interpreters[i].hint;
	return NULL;
}

/* malloc keeps freed blocks, but never held much more than its peak. What the process has beyond the peak at its
 * end is above all memory of mmap. A few MiB are stacks, memory of libraries, and the recorder's own memory. */
static void print_rest(const struct incstack__tracefile_totals *totals, uint64_t handed_out,
		       FILE *out)
{
	const uint64_t few = UINT64_C(16) << 20;
	char text[32];

	if (totals->memory_anonymous < few || totals->memory_anonymous - few < handed_out)
		return;
	fprintf(out,
		"at exit it had %s more than malloc ever handed out: this report does not\n"
		"break down what the program itself mapped (mmap)\n",
		tool_amount(totals->memory_anonymous - handed_out, "bytes", text, sizeof(text)));
}

void tool_report_memory(const struct tool_report *report, FILE *out)
{
	const struct incstack__tracefile_totals *totals =
		incstack__tracefile_reader_totals(report->reader);
	const struct incstack__replay *replay = report->replay;
	const char *hint = tool_report_hint(report);
	char all[32];
	char seen[32];

	if (totals->memory_peak > 0) {
		fprintf(out, "the process's peak was %s; malloc saw %s\n",
			tool_amount(totals->memory_peak, "bytes", all, sizeof(all)),
			tool_amount(replay->peak, "bytes", seen, sizeof(seen)));
		print_rest(totals, replay->peak, out);
	}
	if (hint != NULL)
		fprintf(out, "hint: %s\n", hint);
}
