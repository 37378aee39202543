/* SPDX-License-Identifier: MIT
 *
 * The recording of a process that runs already, or of a program that is run. The worker does it.
 */
#ifndef INCSTACK_TOOL_ATTACH_RECORDING_H
#define INCSTACK_TOOL_ATTACH_RECORDING_H

#include "heap.h"
#include "kernel/events.h"
#include "kernel/program.h"
#include "process/launch.h"
#include "tool/jail/jail.h"
#include "waits.h"

struct tool_attach_recording {
	pid_t pid;
	int pidfd;
	int signals;
	uint64_t limit; /* ns; 0: none */
	uint64_t until; /* CLOCK_MONOTONIC, ns */
	struct tool_attach_events *events;
	struct tool_attach_space *space;
	struct tool_attach_file *file;
	struct tool_attach_heap *heap;   /* null: CPU time is sampled */
	struct tool_attach_maps maps;    /* if allocations are recorded */
	struct tool_attach_waits *waits; /* null: only CPU time */
	struct tool_attach_child child;  /* the program that is run; pid -1: none */
	bool is_held;                    /* it is not the program yet */
	bool has_program;                /* it has not executed another program */
	bool main_has_ended;             /* its main thread */
	bool changed;                    /* the modules have changed since they were written */
	bool is_full;                    /* there is no room for more lists of them */
	uint64_t samples;
	struct tool_attach_threads threads;
};

/* Records until the user, a time or the process ends that. Returns an exit status. */
int tool_attach_record(struct tool_attach_recording *recording, const struct tool_jail *jail,
		       const struct tool_record_options *options);

#endif
