/* SPDX-License-Identifier: MIT
 *
 * A snapshot of a program that is being recorded.
 */
#ifndef INCSTACK_TOOL_SNAPSHOT_H
#define INCSTACK_TOOL_SNAPSHOT_H

#include <sys/types.h>

#include "tool/report/trace_map.h"

struct tool_snapshot {
	pid_t pid;
	char *file;  /* the trace file of the process */
	void *pages; /* the memory of the moment */
	struct tool_trace_seen seen;
};

/* look.c: finds the trace file of the process, and sees what there is. Returns 0, or an exit status after a message. Free
 * *snapshot in each case. */
int tool_snapshot_look(struct tool_snapshot *snapshot, pid_t pid);
void tool_snapshot_free(struct tool_snapshot *snapshot);
/* write.c: writes it to a file. Returns an exit status. */
int tool_snapshot_write(const struct tool_snapshot *snapshot, const char *output);

int tool_snapshot(int argc, char **argv);

#endif
