/* SPDX-License-Identifier: MIT
 *
 * The programs that the kernel runs at breakpoints.
 */
#ifndef INCSTACK_TOOL_ATTACH_PROGRAM_H
#define INCSTACK_TOOL_ATTACH_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/attach/process/functions.h"

enum { TOOL_ATTACH_UPROBE_MULTI = 48 }; /* BPF_TRACE_UPROBE_MULTI, which older headers lack */

/* A breakpoint that the kernel is asked for. */
struct tool_attach_probe {
	char path[32];   /* the file, as a descriptor of the broker */
	uint64_t offset; /* of an instruction in the file */
	uint32_t number; /* of the probe; each hit has it */
	enum tool_attach_hit_kind kind;
};

/* Where the programs write. */
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
			     const struct tool_attach_probe *probe, bool is_linked);
/* Loads a program for links that does nothing. */
int tool_attach_program_empty(void);

#endif
