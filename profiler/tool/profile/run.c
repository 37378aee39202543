/* SPDX-License-Identifier: MIT
 *
 * Runs work that reads profiles, in the jail.
 */
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "tool/files.h"
#include "tool/profile_io.h"

int tool_profile_run(char **inputs, size_t count, int format, const struct tool_filter *filter,
		     const char *output, int (*work)(void *context), void *context)
{
	const char **all =
		tool_filter_inputs((const char *const *)(const void *)inputs, count, filter);
	const struct tool_files files = {
		.inputs = all,
		.input_count = count + filter->files.count,
		.outputs = &output,
		.takes_pipes = format != 0,
		.output_count = output != NULL && strcmp(output, "-") != 0,
	};
	int status = TOOL_FAILED;

	if (all != NULL)
		status = tool_files_run(&files, work, context);
	free(all);
	return status;
}
