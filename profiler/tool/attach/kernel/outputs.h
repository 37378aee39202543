/* SPDX-License-Identifier: MIT
 *
 * The hits of breakpoints.
 */
#ifndef INCSTACK_TOOL_ATTACH_OUTPUTS_H
#define INCSTACK_TOOL_ATTACH_OUTPUTS_H

#include "program.h"
#include "tool/attach/process/functions.h"

struct tool_attach_events;

/* Makes the buffers for hits, before the worker gives up its rights. tool_attach_hits_open() says what
 * failed. */
void tool_attach_outputs_open(struct tool_attach_events *events,
			      const struct tool_attach_maps *maps);
void tool_attach_outputs_close(struct tool_attach_events *events);
/* Begins to report the hits of all threads, also of later ones. Returns 0, or an exit status after a
 * message. */
int tool_attach_hits_open(struct tool_attach_events *events,
			  const struct tool_attach_wanted *wanted, size_t count);
/* Removes the breakpoints, if there are any. */
void tool_attach_hits_stop(struct tool_attach_events *events);
/* How many hits had no room and were not reported. */
uint64_t tool_attach_hits_lost(const struct tool_attach_events *events,
			       enum tool_attach_hit_kind kind);

#endif
