/* SPDX-License-Identifier: MIT
 *
 * Shared by the files that let the kernel report calls of functions of another process: the
 * programs that it runs there.
 */
#ifndef INCSTACK_TOOL_ATTACH_PROBES_H
#define INCSTACK_TOOL_ATTACH_PROBES_H

#include "attach.h"

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
/* Returns a descriptor of the program, or -1 with errno. */
int tool_attach_program_load(const struct tool_attach_maps *maps,
			     const struct tool_attach_probe *probe);

#endif
