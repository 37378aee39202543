/* SPDX-License-Identifier: MIT
 *
 * Shared by the files that let the kernel report calls of functions of another process: the
 * programs that it runs there.
 */
#ifndef INCSTACK_TOOL_ATTACH_PROBES_H
#define INCSTACK_TOOL_ATTACH_PROBES_H

#include <pthread.h>
#include <stdatomic.h>

#include "attach.h"

/* A breakpoint that the kernel is asked for. */
struct tool_attach_probe {
	char path[32];   /* the file, as a descriptor of the broker */
	uint64_t offset; /* of an instruction in the file */
	uint32_t number; /* of the probe; each hit has it */
	enum tool_attach_hit_kind kind;
};

/* program.c: the programs that the kernel runs at the probes. */
struct tool_attach_maps {
	int outputs[TOOL_ATTACH_HIT_KINDS]; /* the buffers of each processor */
	int places;                         /* where threads inside a function want its result */
};

/* Returns 0 or an error number. */
int tool_attach_maps_open(struct tool_attach_maps *maps, size_t processors);
int tool_attach_maps_set(int map, unsigned processor, int event);
/* From now on programs write nothing there. */
void tool_attach_maps_clear(int map, unsigned processor);
void tool_attach_maps_close(struct tool_attach_maps *maps);
/* Loads the program of a probe; with is_linked, of all probes of its kind in a link. Returns its
 * descriptor, or -1 with errno. */
int tool_attach_program_load(const struct tool_attach_maps *maps,
			     const struct tool_attach_probe *probe, int is_linked);
/* Loads one for links that does nothing. */
int tool_attach_program_empty(void);

/* links.c: many probes that end at once. */
enum { TOOL_ATTACH_UPROBE_MULTI = 48 }; /* BPF_TRACE_UPROBE_MULTI, which older headers lack */

/* Whether this kernel has links that report all threads. */
int tool_attach_links_work(void);
/* Links the program to those of the probes, of which there are `count`, that have the kind and the file
 * of the first one. Returns a descriptor, or -1 with errno. */
int tool_attach_link_open(pid_t pid, int program, const struct tool_attach_probe *probes,
			  size_t count);
/* Whether probe `at` is in the link of an earlier one. */
int tool_attach_link_has(const struct tool_attach_probe *probes, size_t at);
/* Links a program that does nothing to all probes of calls. Returns how many links that made. */
size_t tool_attach_links_of_calls(pid_t pid, const struct tool_attach_probe *probes, size_t count,
				  int *fds);
/* Closes descriptors of links or of single probes. */
void tool_attach_links_close(const int *fds, size_t count);

/* children.c: children that were forked with the breakpoints of their parent. */
struct tool_attach_children {
	pid_t pid; /* of the parent */
	const struct tool_attach_probe *probes;
	size_t count;
	int has_new;    /* a child was forked since the last look */
	int is_running; /* the thread */
	atomic_int is_done;
	pthread_t thread;
};

/* Frees new children from the breakpoints, in a thread. Returns at once. */
void tool_attach_children_free(struct tool_attach_children *children);
/* Waits for the thread. */
void tool_attach_children_end(struct tool_attach_children *children);

/* probes.c: the probes of a process, in the broker. */
struct tool_attach_probed {
	uint64_t device, inode;
	int fd;
};
struct tool_attach_probes {
	pid_t pid;
	int error; /* of the maps */
	int is_open;
	struct tool_attach_maps maps;
	struct tool_attach_probed files[TOOL_ATTACH_PROBES];
	size_t file_count;
	struct tool_attach_probe probes[TOOL_ATTACH_PROBES];
	size_t count;
	int is_linked; /* a descriptor stands for many probes */
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
int tool_attach_probes_free_children(struct tool_attach_probes *probes);
/* Removes the breakpoints. */
void tool_attach_probes_stop(struct tool_attach_probes *probes);
void tool_attach_probes_close(struct tool_attach_probes *probes);
/* Returns an event of a single breakpoint, or -1 with errno. */
int tool_attach_probe_event(pid_t pid, const char *path, uint64_t offset, int at_return);
/* Returns how many processors there can be. */
size_t tool_attach_processors(void);

#endif
