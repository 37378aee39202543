/* SPDX-License-Identifier: MIT
 *
 * The recording of a process that runs already, or of a program that is run. The worker does it.
 */
#ifndef INCSTACK_TOOL_ATTACH_RECORDING_H
#define INCSTACK_TOOL_ATTACH_RECORDING_H

#include "process/launch.h"
#include "technique.h"
#include "tool/jail/jail.h"

struct tool_attach_recording {
	const struct tool_attach_technique *technique;
	struct tool_attach_run run;
	int pidfd;
	int signals;
	uint64_t limit;                 /* ns; 0: none */
	uint64_t until;                 /* CLOCK_MONOTONIC, ns */
	struct tool_attach_child child; /* the program that is run; pid -1: none */
	bool main_has_ended;            /* the main thread of the process */
	bool has_changed;               /* the modules, since they were written */
	bool is_full;                   /* there is no room for more lists of modules */
};

/* Returns the technique that the options want. */
const struct tool_attach_technique *
tool_attach_technique_of(const struct tool_record_options *options);
/* Records until the user, a time or the process ends that. Returns an exit status. */
int tool_attach_record(struct tool_attach_recording *recording, const struct tool_jail *jail);

#endif
