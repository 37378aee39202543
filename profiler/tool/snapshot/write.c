/* SPDX-License-Identifier: MIT
 *
 * Writes a snapshot in the jail: the spool is what another process had in its memory.
 */
#include <stdio.h>
#include <string.h>

#include "tool/files.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "snapshot.h"

struct work {
	const struct tool_snapshot *snapshot;
	const char *output;
};

static int write_copy(void *context)
{
	const struct work *work = context;
	FILE *out = tool_output_open(work->output);

	if (out == NULL)
		return TOOL_FAILED;
	return tool_output_close(work->output, out, tool_trace_copy(&work->snapshot->seen, out));
}

int tool_snapshot_write(const struct tool_snapshot *snapshot, const char *output)
{
	const char *const input = snapshot->file;
	struct work work = {snapshot, output};
	const struct tool_files files = {
		.inputs = &input, .input_count = 1, .outputs = &work.output, .output_count = 1};

	return tool_files_run(&files, write_copy, &work);
}
