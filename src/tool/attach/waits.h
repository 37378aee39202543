/* SPDX-License-Identifier: MIT
 *
 * The time that threads spend off a processor.
 */
#ifndef INCSTACK_TOOL_ATTACH_WAITS_H
#define INCSTACK_TOOL_ATTACH_WAITS_H

#include "kernel/report.h"
#include "output/file.h"

struct tool_attach_waits;

struct tool_attach_waits *tool_attach_waits_new(struct tool_attach_file *file,
						struct tool_attach_space *space,
						struct tool_attach_threads *threads,
						uint64_t interval);
void tool_attach_waits_free(struct tool_attach_waits *waits); /* also null */
/* The thread has left its processor, with this stack. */
void tool_attach_waits_left(struct tool_attach_waits *waits,
			    const struct tool_attach_report *report);
/* The same without a stack; and it is back. */
void tool_attach_waits_begin(struct tool_attach_waits *waits, pid_t tid, uint64_t time);
void tool_attach_waits_back(struct tool_attach_waits *waits, pid_t tid, uint64_t time);
/* The thread ran when a tick came. Returns how many ticks this stands for. */
uint64_t tool_attach_waits_ran(struct tool_attach_waits *waits, pid_t tid, uint64_t time);
/* Finds the threads that wait and on which nothing was reported, and reads their stacks. */
void tool_attach_waits_look(struct tool_attach_waits *waits);
/* Reports after that time were lost: what a thread did until the next report on it is unknown. */
void tool_attach_waits_lost(struct tool_attach_waits *waits, uint64_t time);
/* The thread has ended. */
void tool_attach_waits_ended(struct tool_attach_waits *waits,
			     const struct tool_attach_thread *thread, uint64_t time);
/* Writes the long waits that have not ended, up to that time. Searches for waiting threads again if
 * reports were lost. */
void tool_attach_waits_account(struct tool_attach_waits *waits, uint64_t time);
/* Writes all waits that have not ended. If reports were lost, writes the missing time as lost.
 * Returns how long all threads have lived, in ns. */
uint64_t tool_attach_waits_end(struct tool_attach_waits *waits, uint64_t time, bool has_lost);
/* Forgets all threads. */
void tool_attach_waits_clear(struct tool_attach_waits *waits, uint64_t time);

#endif
