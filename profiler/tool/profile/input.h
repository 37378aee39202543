/* SPDX-License-Identifier: MIT
 *
 * Reads what a subcommand is given: a profile of any format, or a trace file.
 */
#ifndef INCSTACK_TOOL_PROFILE_INPUT_H
#define INCSTACK_TOOL_PROFILE_INPUT_H

#include "tool/profile_io.h"

/* Whether the path is that of a trace file. If a format is given, or the name shows one, it is not. */
int tool_input_is_trace(const char *path, int format);
/* Whether a file's content shows that another program has written it. */
int tool_input_is_foreign(const char *path);

/* Takes out of a profile what the options say, and tells it on stderr. With `is_answer`, known allocators are
 * looked through (tool/filter.h). Returns an exit status. */
int tool_input_filter(const char *path, bool is_answer, const struct tool_options *options,
		      struct incstack_profile *profile);

/* Reads all of them, of the given format; 0: each by its name. options->threads is for trace files; it is
 * refused if there is none. They are filtered; with `is_answer` known allocators are also looked through in profiles, not
 * only in traces. profiles[] has room for `count`; those that were read are to be destroyed,
 * also after an error. Returns an exit status. */
int tool_input_read(char *const *paths, size_t count, int format, bool is_answer,
		    const struct tool_options *options, struct incstack_profile **profiles);

#endif
