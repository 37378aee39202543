/* SPDX-License-Identifier: MIT
 *
 * The breakpoints in a process, which the broker sets.
 */
#ifndef INCSTACK_TOOL_ATTACH_PROBES_H
#define INCSTACK_TOOL_ATTACH_PROBES_H

#include "children.h"
#include "program.h"

struct tool_attach_probed {
	uint64_t device, inode;
	int fd;
};

struct tool_attach_probes {
	pid_t pid;
	int error; /* of the maps */
	bool is_open;
	struct tool_attach_maps maps;
	struct tool_attach_probed files[TOOL_ATTACH_PROBES];
	size_t file_count;
	struct tool_attach_probe probes[TOOL_ATTACH_PROBES];
	size_t count;
	bool is_linked; /* a descriptor stands for many probes */
	int fds[TOOL_ATTACH_PROBES];
	size_t fd_count;
	struct tool_attach_children children;
};

/* Makes the maps to which the programs write. */
void tool_attach_probes_begin(struct tool_attach_probes *probes, pid_t pid);
/* Adds a file, which becomes its own, or finds it. Returns its number, or -1: there are too many. */
int tool_attach_probes_file(struct tool_attach_probes *probes, int fd);
/* Adds a probe in a file. Returns 0 or an error number. */
int tool_attach_probes_add(struct tool_attach_probes *probes, uint64_t file, uint64_t offset,
			   uint64_t number, uint64_t kind);
/* Returns 0 or an error number. */
int tool_attach_probes_open(struct tool_attach_probes *probes);
/* Frees children from the breakpoints. Returns whether some have to wait. */
bool tool_attach_probes_free_children(struct tool_attach_probes *probes);
/* Removes the breakpoints. */
void tool_attach_probes_stop(struct tool_attach_probes *probes);
void tool_attach_probes_close(struct tool_attach_probes *probes);
/* Returns an event of a single breakpoint, or -1 with errno. */
int tool_attach_probe_event(pid_t pid, const char *path, uint64_t offset, bool at_return);
/* Returns how many processors there can be. */
size_t tool_attach_processors(void);

#endif
