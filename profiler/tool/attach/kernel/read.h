/* SPDX-License-Identifier: MIT
 *
 * Reads the reports of the kernel.
 */
#ifndef INCSTACK_TOOL_ATTACH_READ_H
#define INCSTACK_TOOL_ATTACH_READ_H

#include "report.h"

struct tool_attach_events;

/* Passes on what the kernel has reported, in the order in which it happened. */
void tool_attach_events_read(struct tool_attach_events *events, tool_attach_handle *handle,
			     void *context);

#endif
