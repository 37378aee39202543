/* SPDX-License-Identifier: MIT
 *
 * Runs a program for the tool to attach to. The child waits before it becomes the program, until the
 * tool is ready.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "tool/record/record.h"

/* Waits for a byte. If the tool gives up, or dies, no byte comes. */
static void run_child(char **program, int gate, const sigset_t *mask)
{
	char byte;

	while (read(gate, &byte, 1) != 1)
		if (errno != EINTR)
			_exit(TOOL_STATUS_CANNOT_RUN);
	sigprocmask(SIG_SETMASK, mask, NULL);
	_exit(tool_record_exec(program));
}

int tool_attach_launch(char **program, const sigset_t *mask, struct tool_attach_child *child)
{
	int gate[2];

	*child = (struct tool_attach_child){-1, -1};
	if (pipe2(gate, O_CLOEXEC) == 0) {
		child->pid = fork();
		if (child->pid == 0) {
			close(gate[1]);
			run_child(program, gate[0], mask);
		}
		close(gate[0]);
		child->gate = gate[1];
	}
	if (child->pid > 0)
		return 0;
	fprintf(stderr, "incstack: cannot start a process: %s\n", strerror(errno));
	return TOOL_STATUS_CANNOT_RUN;
}

void tool_attach_let_go(struct tool_attach_child *child)
{
	if (write(child->gate, "", 1) != 1)
		fprintf(stderr, "incstack: the program has ended before it began\n");
	close(child->gate);
	child->gate = -1;
}

int tool_attach_child_end(struct tool_attach_child *child, const char *file)
{
	struct rusage used;
	int status = 0;

	if (child->gate >= 0)
		close(child->gate);
	while (wait4(child->pid, &status, 0, &used) < 0)
		if (errno != EINTR)
			return TOOL_STATUS_CANNOT_RUN;
	if (child->gate >= 0)
		return TOOL_STATUS_CANNOT_RUN; /* it has not become the program */
	tool_record_note_end(file, (uint64_t)child->pid, status);
	return tool_record_say_end(status, &used);
}
