/* SPDX-License-Identifier: MIT
 *
 * Profiles a program from outside: nothing is loaded into the program and it is never stopped. The
 * kernel copies registers and stacks, and the tool walks the copies.
 */
#ifndef INCSTACK_TOOL_ATTACH_H
#define INCSTACK_TOOL_ATTACH_H

#include <sys/types.h>

#include "tool/record/record.h"

/* Profiles the process until Ctrl-C, the end of the time (in seconds; 0: none) or its own end, and
 * reports. If the options name a program, runs that instead. Returns an exit status. */
int tool_attach(struct tool_record_options *options, pid_t pid, double seconds);

/* options.c: profiles a process, or a program that is run, as the options say. Returns an exit
 * status. */
int tool_attach_or_record(struct tool_record_options *options);

#endif
