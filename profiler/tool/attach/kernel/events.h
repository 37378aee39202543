/* SPDX-License-Identifier: MIT
 *
 * The events that the kernel reports, in buffers that it shares with the tool.
 */
#ifndef INCSTACK_TOOL_ATTACH_EVENTS_H
#define INCSTACK_TOOL_ATTACH_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tool_attach_events;

/* Prepares to sample all threads of the process, also those that it makes later. If the interval is
 * 0, only mappings and the ends of threads are reported. With is_wall, the times at which a thread
 * leaves a processor and is back are reported. Returns 0, or an exit status after a message. */
int tool_attach_events_open(struct tool_attach_events **events, pid_t pid, uint64_t interval,
			    bool is_wall);
/* Whether the kernel would report the waits of a process of the user. */
bool tool_attach_events_permit_waits(void);
/* Begins to sample. */
void tool_attach_events_start(struct tool_attach_events *events);
/* Ends the sampling, and removes the breakpoints; what was reported before can still be read. */
void tool_attach_events_stop(struct tool_attach_events *events);
/* Returns the CPU time that the threads have used in between. *lost is how many records had no room and
 * were not reported: the kernel reports them with the next record that has. */
uint64_t tool_attach_events_used(const struct tool_attach_events *events, uint64_t *lost);
void tool_attach_events_close(struct tool_attach_events *events);
/* How long the buffers last, in milliseconds. */
int tool_attach_events_pause(const struct tool_attach_events *events);
/* Whether threads are sampled, but not while they are in the kernel. */
bool tool_attach_events_only_user(const struct tool_attach_events *events);
size_t tool_attach_events_threads(const struct tool_attach_events *events);

#endif
