/* SPDX-License-Identifier: MIT
 *
 * A program that waits for the tool before it begins.
 */
#ifndef INCSTACK_TOOL_ATTACH_LAUNCH_H
#define INCSTACK_TOOL_ATTACH_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

struct tool_attach_child {
	pid_t pid;
	int gate;
};

/* Starts the program, with this signal mask. Returns 0, or an exit status after a message. */
int tool_attach_launch(char **program, const sigset_t *mask, struct tool_attach_child *child);
void tool_attach_let_go(struct tool_attach_child *child);
/* Waits for the end of the program and reports how it ended. If it was not started yet, it ends.
 * Returns its exit status. */
int tool_attach_child_end(struct tool_attach_child *child, const char *file);

#endif
