/* SPDX-License-Identifier: MIT
 *
 * Runs work that reads profiles, in the jail.
 */
#include <string.h>

#include "profile.h"
#include "tool/files.h"

int tool_profile_run(char **inputs, size_t count, int format, const char *output,
		     int (*work)(void *context), void *context)
{
	const struct tool_files files = {
		.inputs = (const char *const *)(const void *)inputs,
		.input_count = count,
		.outputs = &output,
		.takes_pipes = format != 0,
		.output_count = output != NULL && strcmp(output, "-") != 0,
	};

	return tool_files_run(&files, work, context);
}
