/* SPDX-License-Identifier: MIT
 *
 * Profiles a program that runs already, or one that it runs, and reports. What reads the process is done by
 * a worker without rights. This process is its broker, and reads nothing of the process.
 */
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach.h"
#include "serve.h"
#include "tool/attach/recording.h"
#include "tool/attach/process/process.h"

/* All memory of the worker: its tables and copies are limited by themselves, and a thread of the process
 * takes 1.4 MB of it, most of which is not used. */
#define MEMORY_MOST (UINT64_C(64) << 30)

/* What the worker does besides reading and writing. */
static const struct tool_jail_call calls[] = {
	{SYS_ioctl, 1, PERF_EVENT_IOC_ENABLE},
	{SYS_ioctl, 1, PERF_EVENT_IOC_DISABLE},
};

/* The kernel does not wait for the tool, so a tool that has to wait for a processor loses records. Returns
 * the priority from before. */
static int hurry(void)
{
	enum { PRIORITY = -10 };
	const int before = getpriority(PRIO_PROCESS, 0);

	setpriority(PRIO_PROCESS, 0, PRIORITY); /* which may be forbidden */
	return before;
}

/* Runs the worker. Returns an exit status. */
static int run_worker(struct tool_attach_recording *a, struct tool_attach_broker *broker)
{
	enum { PATIENCE = 3 };
	struct tool_jail jail = {
		.what = "the reader of the process",
		.rows = tool_attach_rows,
		.row_count = TOOL_ATTACH_ROWS,
		.context = broker,
		.limits = {.memory = MEMORY_MOST,
			   .keeps_all = true,
			   .calls = calls,
			   .call_count = sizeof(calls) / sizeof(calls[0])},
		.patience = a->child.pid > 0 ? UINT_MAX : PATIENCE,
	};
	const int priority = hurry();
	int ended_by = 0;
	int status = TOOL_JAIL_FAILED;

	if (tool_jail_fork(&jail) == 0)
		exit(tool_attach_record(a, &jail));
	if (jail.worker > 0)
		status = tool_jail_serve(&jail, &ended_by);
	setpriority(PRIO_PROCESS, 0, priority);
	return ended_by != 0 || status == TOOL_JAIL_FAILED ? TOOL_STATUS_CANNOT_RUN : status;
}

/* The signals that would end the tool end the sampling. */
static void take_signals(struct tool_attach_recording *a, sigset_t *before)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGQUIT);
	sigprocmask(SIG_BLOCK, &signals, before);
	a->signals = signalfd(-1, &signals, SFD_CLOEXEC);
}

/* The signals that came so far were meant for the sampling. The next ones end the report. */
static void give_signals_back(const struct tool_attach_recording *a, const sigset_t *before)
{
	struct signalfd_siginfo info;
	struct pollfd fd = {a->signals, POLLIN, 0};

	while (poll(&fd, 1, 0) > 0 && read(a->signals, &info, sizeof(info)) > 0)
		;
	close(a->signals);
	sigprocmask(SIG_SETMASK, before, NULL);
}

/* Checks the process and lets the worker attach to it. */
static int attach_by_worker(struct tool_attach_recording *a, struct tool_record_options *options)
{
	static struct tool_attach_broker broker;
	int status = tool_attach_process(a->run.pid, &a->pidfd);

	signal(SIGXFSZ, SIG_IGN); /* of this process, not of a program that it runs */
	broker = (struct tool_attach_broker){
		.target.directory = -1, .options = options, .child = &a->child};
	if (status == 0 && tool_attach_target_open(&broker.target, a->run.pid) != 0)
		status = tool_attach_refuse(a->run.pid, "profile", "it has ended");
	if (status == 0 && a->technique->has_probes) {
		tool_attach_probes_begin(&broker.probes, a->run.pid);
		a->run.maps = broker.probes.maps;
	}
	if (status == 0)
		status = run_worker(a, &broker);
	tool_attach_probes_close(&broker.probes);
	tool_attach_target_close(&broker.target);
	if (a->pidfd >= 0)
		close(a->pidfd);
	return status;
}

static int launch(struct tool_attach_recording *a, const struct tool_record_options *options,
		  const sigset_t *mask)
{
	const int status = tool_attach_launch(options->program, mask, &a->child);

	a->run.pid = a->child.pid;
	a->run.is_ours = false;
	return status;
}

int tool_attach(struct tool_record_options *options, pid_t pid, double seconds)
{
	static struct tool_attach_recording attached;
	const uint64_t start = tool_record_now(CLOCK_REALTIME_COARSE); /* the clock of the header */
	sigset_t before;
	int status;
	int ended;

	attached = (struct tool_attach_recording){.technique = tool_attach_technique_of(options),
						  .run = {.pid = pid,
							  .options = options,
							  .maps = {.outputs = {-1, -1, -1}},
							  .is_ours = true},
						  .pidfd = -1,
						  .child = {-1, -1},
						  .limit = (uint64_t)(seconds * 1e9)};
	take_signals(&attached, &before);
	status = options->program[0] ? launch(&attached, options, &before) : 0;
	if (status == 0)
		status = attach_by_worker(&attached, options);
	ended = attached.child.pid > 0 ? tool_attach_child_end(&attached.child, options->file) : 0;
	give_signals_back(&attached, &before);
	if (status == 0 && tool_record_report(options, start, NULL) != 0)
		status = TOOL_STATUS_CANNOT_RUN;
	free(options->file);
	return status != 0 ? status : ended;
}
