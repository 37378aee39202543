/* SPDX-License-Identifier: MIT
 *
 * Tells trace files from profiles by their names and first bytes, and reads either.
 */
#include "input.h"

#include <string.h>

#include "tool/files.h"
#include "tool/names.h"
#include "tool/report/report.h"
#include "profile/files.h"

int tool_input_is_trace(const char *path, int format)
{
	return !format && strcmp(path, "-") != 0 && !incstack_profile_format_of(path) &&
	       tool_trace_is_one(path);
}

int tool_input_is_foreign(const char *path)
{
	const int fd = tool_trace_is_one(path) ? -1 : tool_files_input(path);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");
	const int is_foreign = stream && incstack__profile_format_guess(stream) != 0;

	if (stream)
		fclose(stream);
	return is_foreign;
}

int tool_input_filter(const char *path, bool is_answer, const struct tool_options *options,
		      struct incstack_profile *profile)
{
	struct tool_filtered done;
	const int status = tool_filter_apply(&options->filter, is_answer, profile, &done);

	if (!status)
		tool_filter_tell(&done, "incstack: ", path, stderr);
	return status;
}

static int read_one(const char *path, int format, bool is_answer,
		    const struct tool_options *options, struct incstack_profile **profile)
{
	const int is_trace = tool_input_is_trace(path, format);
	bool is_whole = true;
	const int status = is_trace ? tool_trace_profile(path, options->threads, profile, &is_whole)
				    : tool_profile_read(path, format, NULL, profile);

	if (!status && !is_whole && options->limit_count) {
		fprintf(stderr, "incstack: --fail-if cannot judge %s, a part of which is missing\n",
			tool_name(path));
		return TOOL_FAILED;
	}
	return status ? status : tool_input_filter(path, is_trace || is_answer, options, *profile);
}

int tool_input_read(char *const *paths, size_t count, int format, bool is_answer,
		    const struct tool_options *options, struct incstack_profile **profiles)
{
	int traces = 0, status = TOOL_DONE;

	for (size_t i = 0; i < count; i++)
		traces |= tool_input_is_trace(paths[i], format);
	if (!traces)
		status = tool_options_refuse(options, "t", "without a trace file");
	for (size_t i = 0; i < count && !status; i++)
		status = read_one(paths[i], format, is_answer, options, &profiles[i]);
	return status;
}
