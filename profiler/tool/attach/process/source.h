/* SPDX-License-Identifier: MIT
 *
 * The files that another process has mapped, and those in /proc that describe it.
 */
#ifndef INCSTACK_TOOL_ATTACH_SOURCE_H
#define INCSTACK_TOOL_ATTACH_SOURCE_H

#include <sys/types.h>

#include "mapping.h"

/* A process, and the user whose files it could open when the tool began. */
struct tool_attach_target {
	pid_t pid;
	int directory; /* /proc/PID; it stays that of this process */
	uid_t user;
	gid_t group;
};

/* Returns 0 or an error number. */
int tool_attach_target_open(struct tool_attach_target *target, pid_t pid);
void tool_attach_target_close(struct tool_attach_target *target);

/* Opens the file of a mapping, which is a regular one, to be read. Nothing is opened that the process
 * cannot read and has not mapped. Returns a descriptor or -1. If `path` is not null, it gets a name by
 * which the tool can open the file, or null. */
int tool_attach_source_open(const struct tool_attach_target *target,
			    const struct tool_attach_mapping *mapping, char **path);

#endif
