/* SPDX-License-Identifier: MIT
 *
 * A technique turns the reports of the kernel into what is written. It is a table of functions, which the
 * options choose once.
 */
#ifndef INCSTACK_TOOL_ATTACH_TECHNIQUE_H
#define INCSTACK_TOOL_ATTACH_TECHNIQUE_H

#include "kernel/events.h"
#include "kernel/program.h"
#include "kernel/report.h"
#include "output/file.h"
#include "output/threads.h"

/* A process that is profiled, as techniques know it. */
struct tool_attach_run {
	pid_t pid;
	const struct tool_record_options *options;
	struct tool_attach_maps maps; /* where breakpoints report, if the technique has any */
	bool is_ours;                 /* the process runs the program that is profiled */
	uint64_t samples;             /* for the progress */
	struct tool_attach_events *events;
	struct tool_attach_space *space;
	struct tool_attach_file *file;
	struct tool_attach_threads threads;
	void *own; /* of the technique, one block; null: nothing */
};

struct tool_attach_technique {
	/* The words of messages. */
	const char *doing; /* "sampling" */
	const char *done;  /* "sampled" */
	const char *unit;  /* of the progress: "samples" */
	/* Whether it sets breakpoints, which end with the program and with its main thread. */
	bool has_probes;
	/* Opens the kernel's events. The worker still has its rights, and has read nothing of the process.
	 * Returns 0, or an exit status after a message. */
	int (*prepare)(struct tool_attach_run *run);
	/* Opens the trace file, and all that reads the process. The worker has no rights any more, and knows the
	 * modules. Returns 0, or an exit status after a message. */
	int (*open)(struct tool_attach_run *run);
	/* Handles a report, unless it is a mapping. While the process runs another program, only losses, ends
	 * of threads and TOOL_ATTACH_EXECUTED are reported. */
	void (*report)(struct tool_attach_run *run, const struct tool_attach_report *report);
	/* Writes what can be written at this time without a report. */
	void (*account)(struct tool_attach_run *run, uint64_t time);
	/* Writes the rest, when no report follows. The recording has ended at `time`, the threads have used
	 * cpu_ns, and so many reports were lost that no report counts. Returns the time that all samples
	 * together stand for, in ns. */
	uint64_t (*end)(struct tool_attach_run *run, uint64_t time, uint64_t cpu_ns, uint64_t lost);
};

/* ticks.c: CPU time. */
extern const struct tool_attach_technique tool_attach_ticks;
/* waits.c: CPU time, and the time that threads spend off a processor. */
extern const struct tool_attach_technique tool_attach_waits;
/* heap.c: allocations. */
extern const struct tool_attach_technique tool_attach_heap;

#endif
