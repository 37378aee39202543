/* SPDX-License-Identifier: MIT
 *
 * Runs work that reads traces, in the jail.
 */
#include <stdlib.h>

#include "tool/files.h"
#include "tool/profile_io.h"
#include "report.h"

static const char *const suffixes[] = {TOOL_REPORT_PAGE, TOOL_REPORT_FOLDED};
enum { SUFFIXES = sizeof(suffixes) / sizeof(suffixes[0]) };

/* Returns other than 0 if there is no memory. */
static int name_outputs(char **outputs, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < SUFFIXES * count; i++)
		if (asprintf(&outputs[i], "%s%s", prefixes[i / SUFFIXES], suffixes[i % SUFFIXES]) <
		    0) {
			outputs[i] = NULL;
			return -1;
		}
	return 0;
}

int tool_report_run(const char *const *files, size_t count, size_t more,
		    const char *const *prefixes, bool are_derived, int (*work)(void *context),
		    void *context)
{
	char **outputs = calloc(SUFFIXES * count, sizeof(*outputs));
	const struct tool_files run = {
		.inputs = files,
		.input_count = count + more,
		.outputs = (const char *const *)(const void *)outputs,
		.output_count = SUFFIXES * count,
		.completes = are_derived,
		.given = more,
	};
	int status = TOOL_FAILED;

	if (outputs != NULL && name_outputs(outputs, prefixes, count) == 0)
		status = tool_files_run(&run, work, context);
	else
		fprintf(stderr, "incstack: out of memory\n");
	for (size_t i = 0; outputs != NULL && i < SUFFIXES * count; i++)
		free(outputs[i]);
	free(outputs);
	return status;
}
