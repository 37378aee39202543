/* SPDX-License-Identifier: MIT
 *
 * The files that another process has mapped.
 */
#ifndef INCSTACK_TOOL_ATTACH_SOURCE_H
#define INCSTACK_TOOL_ATTACH_SOURCE_H

#include "attach.h"

struct tool_attach_source {
	pid_t pid;
	struct tool_attach_mapping mapping;
};

/* Opens the mapped file, which is a regular one, to be read. Returns a descriptor or -1. If `path` is
 * not null, it gets a name by which the tool can open the file, or null. */
int tool_attach_source_open(const struct tool_attach_source *source, char **path);

#endif
