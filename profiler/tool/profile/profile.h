/* SPDX-License-Identifier: MIT
 *
 * The subcommands on profiles. Each gets the arguments after its name and returns
 * an exit status.
 */
#ifndef INCSTACK_TOOL_PROFILE_H
#define INCSTACK_TOOL_PROFILE_H

#include <stddef.h>

#include "tool/filter.h"

int tool_convert(int argc, char **argv);
int tool_merge(int argc, char **argv);
int tool_compare(int argc, char **argv);
int tool_report(int argc, char **argv);

/* Runs work that reads the inputs and the files of the filter, and writes the output, in the jail. Inputs may be pipes if
 * their format is given or their names show it. The output may be null. Returns
 * the exit status. */
int tool_profile_run(char **inputs, size_t count, int format, const struct tool_filter *filter,
		     const char *output, int (*work)(void *context), void *context);

#endif
