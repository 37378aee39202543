/* SPDX-License-Identifier: MIT
 *
 * Records a process, until the user, a time or the program ends that. First the worker makes what needs
 * rights and reads nothing of the process. Then it gives up its rights, and reads.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/read.h"
#include "process/ask.h"
#include "process/process.h"
#include "recording.h"

enum end {
	END_NOT,
	END_BY_USER,
	END_OF_TIME,
	END_OF_PROCESS,
	END_OF_PROGRAM,
	END_OF_MAIN_THREAD,
	END_BY_ERROR
};

/* ---- what the kernel reports --------------------------------------------------------------- */

/* Writes the modules that are mapped now, if they have changed. Returns false if they cannot be written: then
 * nothing may follow, because its addresses would be looked up in other modules. */
static bool write_modules(struct tool_attach_recording *a)
{
	if (a->has_changed && !a->is_full && !tool_attach_file_modules(a->run.file, a->run.space)) {
		fputs("incstack: the process changes its mappings too often: there is no room for "
		      "more lists of its modules; the recording ends here\n",
		      stderr);
		a->is_full = true;
	}
	a->has_changed = false;
	return !a->is_full;
}

/* Breakpoints end with the program; everything else begins with the program that is run. */
static void on_executed(struct tool_attach_recording *a, const struct tool_attach_report *report)
{
	tool_attach_space_clear(a->run.space);
	a->technique->report(&a->run, report);
	a->has_changed = true;
	a->run.is_ours = !a->technique->has_probes;
}

static void on_ended(struct tool_attach_recording *a, const struct tool_attach_report *report)
{
	struct tool_attach_thread *thread = tool_attach_threads_find(&a->run.threads, report->tid);

	a->main_has_ended |= report->tid == a->run.pid;
	if (!thread)
		return;
	a->technique->report(&a->run, report);
	tool_attach_file_ended(a->run.file, thread);
	tool_attach_threads_remove(&a->run.threads, thread);
}

static void on_report(void *context, const struct tool_attach_report *report)
{
	struct tool_attach_recording *a = context;

	switch (report->kind) {
	case TOOL_ATTACH_MAPPED:
		a->has_changed |= tool_attach_space_map(a->run.space, &report->mapping);
		break;
	case TOOL_ATTACH_EXECUTED:
		on_executed(a, report);
		break;
	case TOOL_ATTACH_ENDED:
		on_ended(a, report);
		break;
	case TOOL_ATTACH_LOST:
	case TOOL_ATTACH_HITS_LOST:
		a->technique->report(&a->run, report);
		break;
	default: /* what a thread of the process has done */
		if (a->run.is_ours && write_modules(a))
			a->technique->report(&a->run, report);
		break;
	}
}

/* ---- the time in between ---------------------------------------------------------------------- */

/* The kernel removes the breakpoints with the main thread. Usually the whole process ends then, but
 * the other threads may continue. */
static enum end end_of_main_thread(const struct tool_attach_recording *a)
{
	enum { PATIENCE_MS = 1000 };
	struct pollfd process = {a->pidfd, POLLIN, 0};

	return poll(&process, 1, PATIENCE_MS) > 0 ? END_OF_PROCESS : END_OF_MAIN_THREAD;
}

/* Passes a signal on to the program that is run. A signal from the terminal's keys reaches both
 * without this. */
static enum end take_signal(const struct tool_attach_recording *a)
{
	struct signalfd_siginfo info;

	if (a->child.pid < 0)
		return END_BY_USER;
	if (read(a->signals, &info, sizeof(info)) > 0 && info.ssi_signo != SIGINT &&
	    info.ssi_signo != SIGQUIT)
		tool_attach_ask_signal((int)info.ssi_signo);
	return END_NOT;
}

static enum end wait_a_while(const struct tool_attach_recording *a)
{
	struct pollfd fds[] = {{a->signals, POLLIN, 0}, {a->pidfd, POLLIN, 0}};

	poll(fds, 2, tool_attach_events_pause(a->run.events));
	if (fds[0].revents != 0)
		return take_signal(a);
	if (fds[1].revents != 0)
		return END_OF_PROCESS;
	if (a->technique->has_probes && !a->run.is_ours)
		return END_OF_PROGRAM;
	if (a->technique->has_probes && a->main_has_ended)
		return end_of_main_thread(a);
	if (tool_attach_file_failed(a->run.file))
		return END_BY_ERROR;
	if (a->is_full)
		return END_OF_TIME;
	return a->limit != 0 && tool_record_now(CLOCK_MONOTONIC) >= a->until ? END_OF_TIME
									     : END_NOT;
}

static void show_progress(const struct tool_attach_recording *a, uint64_t start)
{
	enum { EACH_NS = 2000000000 };
	static uint64_t shown;
	const uint64_t passed = tool_record_now(CLOCK_MONOTONIC) - start;

	if (passed / EACH_NS == shown || !isatty(STDERR_FILENO))
		return;
	shown = passed / EACH_NS;
	fprintf(stderr, "\rincstack: %" PRIu64 " s, %" PRIu64 " %s \033[K", passed / 1000000000,
		a->run.samples, a->technique->unit);
}

static enum end run(struct tool_attach_recording *a)
{
	const uint64_t start = tool_record_now(CLOCK_MONOTONIC);
	enum end end;

	a->until = start + a->limit;
	while ((end = wait_a_while(a)) == END_NOT) {
		const uint64_t now = tool_record_now(CLOCK_MONOTONIC);

		tool_attach_events_read(a->run.events, on_report, a);
		a->technique->account(&a->run, now);
		show_progress(a, start);
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return end;
}

static void say_end(const struct tool_attach_recording *a, enum end end)
{
	const char *what = end == END_OF_PROCESS   ? "has ended"
			   : end == END_OF_PROGRAM ? "has become another program"
			   : end == END_OF_MAIN_THREAD
				   ? "has lost its main thread; nothing is recorded after that"
				   : NULL;

	if (a->child.pid >= 0)
		return;
	if (what)
		fprintf(stderr, "incstack: process %d %s\n", (int)a->run.pid, what);
	else
		fprintf(stderr, "incstack: process %d goes on without being %s\n", (int)a->run.pid,
			a->technique->done);
}

/* Some frames in this code have no callers. */
static void say_left_out(const struct tool_attach_recording *a)
{
	const uint64_t count = tool_attach_space_left_out(a->run.space);

	if (count > 0)
		fprintf(stderr,
			"incstack: process %d has more code than is read: traces may end at "
			"%" PRIu64 " mappings or tables\n",
			(int)a->run.pid, count);
}

/* Ends the sampling and writes the rest. Returns an exit status. */
static int finish(struct tool_attach_recording *a, enum end end)
{
	const uint64_t end_ns = tool_record_now(CLOCK_MONOTONIC);
	uint64_t cpu_ns;
	uint64_t lost;

	tool_attach_events_stop(a->run.events);
	tool_attach_events_read(a->run.events, on_report, a);
	if (end == END_OF_PROCESS && a->technique->has_probes && !a->run.is_ours)
		end = END_OF_PROGRAM; /* the new program has ended before the tool looked */
	cpu_ns = tool_attach_events_used(a->run.events, &lost);
	cpu_ns = a->technique->end(&a->run, end_ns, cpu_ns, lost);
	say_end(a, end);
	say_left_out(a);
	return tool_attach_file_end(a->run.file, cpu_ns) != 0 ? TOOL_STATUS_CANNOT_RUN : 0;
}

static void say_begin(const struct tool_attach_recording *a)
{
	if (a->child.pid > 0)
		return;
	fprintf(stderr, "incstack: %s process %d (threads: %zu); %s\n", a->technique->doing,
		(int)a->run.pid, tool_attach_events_threads(a->run.events),
		a->limit != 0 ? "Ctrl-C ends it early" : "Ctrl-C ends it");
	if (tool_attach_events_only_user(a->run.events))
		fprintf(stderr, "incstack: time in system calls is not sampled: that needs root or "
				"sysctl kernel.perf_event_paranoid=1\n");
}

static int record(struct tool_attach_recording *a)
{
	say_begin(a);
	if (a->child.pid > 0)
		tool_attach_ask_let_go();
	return finish(a, run(a));
}

/* ---- the worker ------------------------------------------------------------------------------ */

const struct tool_attach_technique *
tool_attach_technique_of(const struct tool_record_options *options)
{
	if (options->kind == INCSTACK__TRACEFILE_OF_HEAP)
		return &tool_attach_heap;
	return options->is_wall ? &tool_attach_waits : &tool_attach_ticks;
}

/* What needs rights, and reads nothing of the process: the buffers of the kernel. */
static int prepare(struct tool_attach_recording *a)
{
	a->run.space = tool_attach_space_new();
	if (!a->run.space)
		return tool_attach_refuse(a->run.pid, "profile", "out of memory");
	return a->technique->prepare(&a->run);
}

/* What reads the process. */
static int attach(struct tool_attach_recording *a)
{
	int status;

	tool_attach_events_start(a->run.events);
	if (tool_attach_space_read(a->run.space) != 0)
		return tool_attach_refuse(a->run.pid, "profile", "it has ended");
	status = a->technique->open(&a->run);
	return status != 0 ? status : record(a);
}

static int by_number(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

/* Others may have left descriptors open for the tool. */
static void close_others(const struct tool_attach_recording *a, const struct tool_jail *jail)
{
	const int *outputs = a->run.maps.outputs;
	int kept[] = {STDERR_FILENO,
		      jail->channel,
		      a->pidfd,
		      a->signals,
		      outputs[TOOL_ATTACH_ENTRY],
		      outputs[TOOL_ATTACH_RETURN],
		      outputs[TOOL_ATTACH_FREE]};
	enum { KEPT = sizeof(kept) / sizeof(kept[0]) };
	const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (nothing >= 0)
		dup2(nothing, STDIN_FILENO);
	qsort(kept, KEPT, sizeof(kept[0]), by_number);
	for (int i = 0; i < KEPT; i++) {
		const int last = i + 1 < KEPT ? kept[i + 1] - 1 : INT_MAX;

		if (kept[i] >= STDERR_FILENO && last > kept[i])
			syscall(SYS_close_range, kept[i] + 1, last, 0);
	}
}

int tool_attach_record(struct tool_attach_recording *a, const struct tool_jail *jail)
{
	int status;

	tool_attach_ask_begin(jail);
	close_others(a, jail);
	status = prepare(a);
	if (status == 0) {
		tool_jail_enter(jail);
		status = attach(a);
	}
	tool_attach_events_close(a->run.events);
	free(a->run.own);
	tool_attach_space_free(a->run.space);
	tool_attach_file_free(a->run.file);
	tool_attach_threads_clear(&a->run.threads);
	return status;
}
