/* SPDX-License-Identifier: MIT
 *
 * Checks the options that profile a running process.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach.h"
#include "tool/attach/kernel/events.h"
#include "tracefile/format.h"

static int refuse(const char *message)
{
	fprintf(stderr, "incstack: %s\n", message);
	return TOOL_STATUS_USAGE;
}

static int attach(struct tool_record_options *options)
{
	double seconds = 0;
	char *end = NULL;
	long pid;

	errno = 0;
	pid = strtol(options->pid, &end, 10);
	if (errno != 0 || *end != '\0' || pid <= 0 || pid > INT_MAX)
		return refuse("--pid takes a process id");
	if (options->program[0] || options->mode || options->crosscheck || options->follow)
		return refuse("--pid takes no program, and neither --mode, --crosscheck nor "
			      "--follow-children");
	if (options->by_calls)
		return refuse(
			"--pid takes no --wall=calls: the recorder cannot be loaded into a process "
			"that runs; --wall lets the kernel report the waits");
	if (options->kind == INCSTACK__TRACEFILE_OF_HEAP && options->interval != 1)
		return refuse("--pid takes no --interval: the kernel stops the process at each "
			      "call, recorded or not");
	if (options->duration) {
		seconds = strtod(options->duration, &end);
		if (end == options->duration || *end != '\0' || !(seconds > 0 && seconds <= 1e9))
			return refuse("--duration takes a number of seconds, for example 10");
	}
	return tool_attach(options, (pid_t)pid, seconds);
}

/* Chooses the way in which the waits of a program are measured that is run. */
static int launch(struct tool_record_options *options)
{
	int status;

	if (options->by_calls || (!options->by_kernel && !tool_attach_events_permit_waits())) {
		options->by_calls = true;
		return tool_record(options);
	}
	if (options->mode || options->crosscheck || options->follow)
		return refuse("--wall takes neither --mode, --crosscheck nor --follow-children");
	if (!options->program[0])
		return refuse("no program given: incstack cpu --wall -- PROGRAM [ARGS]");
	status = tool_record_check_program(options->program[0]);
	return status != 0 ? status : tool_attach(options, 0, 0);
}

/* Whether the kernel has to sample a program that is run, and can do what the options ask for. */
static bool needs_kernel(const struct tool_record_options *options)
{
	return options->kind == INCSTACK__TRACEFILE_OF_CPU && !options->mode &&
	       !options->crosscheck && !options->follow && options->program[0] &&
	       tool_record_is_unloadable(options->program[0]);
}

int tool_attach_or_record(struct tool_record_options *options)
{
	if (options->pid)
		return attach(options);
	if (options->duration)
		return refuse("--duration needs --pid");
	if (options->is_wall)
		return launch(options);
	if (needs_kernel(options))
		return tool_attach(options, 0, 0);
	return tool_record(options);
}
