/* SPDX-License-Identifier: MIT
 *
 * Records a process, until the user, a time or the program ends that. First the worker makes what needs
 * rights and reads nothing of the process. Then it gives up its rights, and reads.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* syscall */
#endif
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

#include "kernel/outputs.h"
#include "kernel/read.h"
#include "kernel/sandbox.h"
#include "recording.h"
#include "process/ask.h"
#include "process/process.h"
#include "tracefile/notes.h"

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
	if (a->changed && !a->is_full && !tool_attach_file_modules(a->file, a->space)) {
		fputs("incstack: the process changes its mappings too often: there is no room for "
		      "more lists of its modules; the recording ends here\n",
		      stderr);
		a->is_full = true;
	}
	a->changed = false;
	return !a->is_full;
}

static void on_tick(struct tool_attach_recording *a, const struct tool_attach_report *report)
{
	struct tool_attach_thread *thread = tool_attach_threads_add(&a->threads, report->tid);
	uint64_t ticks = 1;

	if (a->waits)
		ticks = tool_attach_waits_ran(a->waits, report->tid, report->time);
	if (ticks == 0)
		return;
	a->samples++;
	if (!thread) {
		tool_attach_file_lost(a->file, report->time, ticks);
		return;
	}
	tool_attach_thread_walk(&a->threads, thread, a->space, &report->stack);
	tool_attach_file_ticks(a->file, thread, report->time, ticks);
}

/* Handles what a thread of the program has done, if it is the program that is profiled. */
static void on_thread(struct tool_attach_recording *a, const struct tool_attach_report *report)
{
	if (a->is_held || (a->heap && !a->has_program) || !write_modules(a))
		return;
	switch (report->kind) {
	case TOOL_ATTACH_LEFT:
		tool_attach_waits_left(a->waits, report);
		a->samples++;
		break;
	case TOOL_ATTACH_ON:
		tool_attach_waits_back(a->waits, report->tid, report->time);
		break;
	case TOOL_ATTACH_OFF:
		tool_attach_waits_begin(a->waits, report->tid, report->time);
		break;
	case TOOL_ATTACH_HIT:
		tool_attach_heap_hit(a->heap, report);
		a->samples++;
		break;
	default:
		on_tick(a, report);
		break;
	}
}

static void on_lost(struct tool_attach_recording *a, const struct tool_attach_report *report)
{
	if (a->waits)
		tool_attach_waits_lost(a->waits, report->lost.since);
	else
		tool_attach_file_lost(a->file, report->time, report->lost.count);
}

static void on_executed(struct tool_attach_recording *a, uint64_t time)
{
	tool_attach_space_clear(a->space);
	if (a->waits)
		tool_attach_waits_clear(a->waits, time);
	a->changed = true;
	a->has_program = false;
	a->is_held = false;
}

static void on_ended(struct tool_attach_recording *a, pid_t tid, uint64_t time)
{
	struct tool_attach_thread *thread = tool_attach_threads_find(&a->threads, tid);

	a->main_has_ended |= tid == a->pid;
	if (!thread)
		return;
	if (a->heap)
		tool_attach_heap_ended(a->heap, thread);
	if (a->waits)
		tool_attach_waits_ended(a->waits, thread, time);
	tool_attach_file_ended(a->file, thread);
	tool_attach_threads_remove(&a->threads, thread);
}

static void on_report(void *context, const struct tool_attach_report *report)
{
	struct tool_attach_recording *a = context;

	switch (report->kind) {
	case TOOL_ATTACH_LOST:
		on_lost(a, report);
		break;
	case TOOL_ATTACH_HITS_LOST:
		tool_attach_heap_lost(a->heap, report->hits_lost.kind, report->hits_lost.count);
		break;
	case TOOL_ATTACH_MAPPED:
		a->changed |= tool_attach_space_map(a->space, &report->mapping);
		break;
	case TOOL_ATTACH_EXECUTED:
		on_executed(a, report->time);
		break;
	case TOOL_ATTACH_ENDED:
		on_ended(a, report->tid, report->time);
		break;
	default:
		on_thread(a, report);
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

	poll(fds, 2, tool_attach_events_pause(a->events));
	if (fds[0].revents != 0)
		return take_signal(a);
	if (fds[1].revents != 0)
		return END_OF_PROCESS;
	if (a->heap != NULL && !a->has_program)
		return END_OF_PROGRAM;
	if (a->heap != NULL && a->main_has_ended)
		return end_of_main_thread(a);
	if (tool_attach_file_failed(a->file))
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
		a->samples, a->heap != NULL ? "calls" : "samples");
}

static enum end run(struct tool_attach_recording *a)
{
	const uint64_t start = tool_record_now(CLOCK_MONOTONIC);
	enum end end;

	a->until = start + a->limit;
	while ((end = wait_a_while(a)) == END_NOT) {
		const uint64_t now = tool_record_now(CLOCK_MONOTONIC);

		tool_attach_events_read(a->events, on_report, a);
		if (a->waits != NULL)
			tool_attach_waits_account(a->waits, now);
		show_progress(a, start);
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return end;
}

/* Counts the records for which no buffer had room and that were not reported yet. */
static void add_lost(struct tool_attach_recording *a)
{
	if (a->heap == NULL)
		return;
	for (enum tool_attach_hit_kind kind = 0; kind < TOOL_ATTACH_HIT_KINDS; kind++) {
		const uint64_t lost = tool_attach_hits_lost(a->events, kind);

		if (lost > 0)
			tool_attach_heap_lost(a->heap, kind, lost);
	}
	tool_attach_heap_end(a->heap);
}

static void say_end(const struct tool_attach_recording *a, enum end end)
{
	const char *what = end == END_OF_PROCESS   ? "has ended"
			   : end == END_OF_PROGRAM ? "has become another program"
			   : end == END_OF_MAIN_THREAD
				   ? "has lost its main thread; nothing is recorded after that"
			   : a->heap != NULL ? "goes on without being recorded"
					     : "goes on without being sampled";

	if (a->child.pid < 0)
		fprintf(stderr, "incstack: process %d %s\n", (int)a->pid, what);
}

/* Some frames in this code have no callers. */
static void say_left_out(const struct tool_attach_recording *a)
{
	const uint64_t count = tool_attach_space_left_out(a->space);

	if (count > 0)
		fprintf(stderr,
			"incstack: process %d has more code than is read: traces may end at "
			"%" PRIu64 " mappings or tables\n",
			(int)a->pid, count);
}

/* Ends the sampling and writes the rest. Returns an exit status. */
static int finish(struct tool_attach_recording *a, enum end end)
{
	const uint64_t end_ns = tool_record_now(CLOCK_MONOTONIC);
	uint64_t cpu_ns;
	uint64_t lost;

	tool_attach_events_stop(a->events);
	tool_attach_events_read(a->events, on_report, a);
	if (end == END_OF_PROCESS && a->heap != NULL && !a->has_program)
		end = END_OF_PROGRAM; /* the new program has ended before the tool looked */
	cpu_ns = tool_attach_events_used(a->events, &lost);
	if (a->waits != NULL)
		cpu_ns = tool_attach_waits_end(a->waits, end_ns, lost > 0);
	else if (lost > 0 && a->heap == NULL)
		tool_attach_file_lost(a->file, tool_record_now(CLOCK_MONOTONIC), lost);
	add_lost(a);
	say_end(a, end);
	say_left_out(a);
	return tool_attach_file_end(a->file, a->heap == NULL ? cpu_ns : 0) != 0
		       ? TOOL_STATUS_CANNOT_RUN
		       : 0;
}

static void say_begin(const struct tool_attach_recording *a)
{
	if (a->child.pid > 0)
		return;
	fprintf(stderr, "incstack: %s process %d (threads: %zu); %s\n",
		a->heap != NULL ? "recording" : "sampling", (int)a->pid,
		tool_attach_events_threads(a->events),
		a->limit != 0 ? "Ctrl-C ends it early" : "Ctrl-C ends it");
	if (tool_attach_events_only_user(a->events))
		fprintf(stderr, "incstack: time in system calls is not sampled: that needs root or "
				"sysctl kernel.perf_event_paranoid=1\n");
}

static int begin_waits(struct tool_attach_recording *a, const struct tool_record_options *options)
{
	tool_attach_file_note(a->file, INCSTACK__NOTE_WALL);
	a->waits = tool_attach_waits_new(a->file, a->space, &a->threads, options->interval);
	if (a->waits == NULL)
		return -1;
	if (!a->is_held)
		tool_attach_waits_look(a->waits);
	return 0;
}

static int record(struct tool_attach_recording *a, const struct tool_record_options *options)
{
	a->file = tool_attach_file_new(options, a->pid);
	if (a->file == NULL)
		return TOOL_STATUS_CANNOT_RUN;
	tool_attach_file_modules(a->file, a->space);
	if (options->kind == INCSTACK__TRACEFILE_OF_CPU && a->child.pid < 0)
		tool_attach_file_note(a->file, INCSTACK__NOTE_OUTSIDE);
	if (options->kind == INCSTACK__TRACEFILE_OF_HEAP) {
		tool_attach_file_note(a->file, INCSTACK__NOTE_ATTACHED);
		a->heap = tool_attach_heap_new(a->file, a->space, &a->threads);
		if (a->heap == NULL)
			return TOOL_STATUS_CANNOT_RUN;
	}
	if (options->is_wall && begin_waits(a, options) != 0)
		return TOOL_STATUS_CANNOT_RUN;
	say_begin(a);
	if (a->child.pid > 0)
		tool_attach_ask_let_go();
	return finish(a, run(a));
}

/* ---- the worker ------------------------------------------------------------------------------ */

static int read_space(struct tool_attach_recording *a)
{
	if (tool_attach_space_read(a->space) == 0)
		return 0;
	return tool_attach_refuse(a->pid, "profile", "it has ended");
}

static int open_probes(const struct tool_attach_recording *a)
{
	struct tool_attach_wanted *wanted;
	size_t count;
	int status = tool_attach_functions_find(a->pid, a->space, &wanted, &count);

	if (status == 0)
		status = tool_attach_hits_open(a->events, wanted, count);
	free(wanted);
	return status;
}

/* What needs rights, and reads nothing of the process: the buffers of the kernel. */
static int prepare(struct tool_attach_recording *a, const struct tool_record_options *options)
{
	const bool is_heap = options->kind == INCSTACK__TRACEFILE_OF_HEAP;
	int status;

	a->space = tool_attach_space_new();
	if (a->space == NULL)
		return tool_attach_refuse(a->pid, "profile", "out of memory");
	status = tool_attach_events_open(&a->events, a->pid, is_heap ? 0 : options->interval,
					 options->is_wall);
	if (status == 0 && is_heap)
		status = tool_attach_process_may_return(a->pid);
	if (status == 0 && is_heap)
		tool_attach_outputs_open(a->events, &a->maps);
	return status;
}

/* What reads the process. */
static int attach(struct tool_attach_recording *a, const struct tool_record_options *options)
{
	int status;

	tool_attach_events_start(a->events);
	status = read_space(a);

	if (status == 0 && options->kind == INCSTACK__TRACEFILE_OF_HEAP)
		status = open_probes(a);
	if (status == 0)
		status = record(a, options);
	return status;
}

static int by_number(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

/* Others may have left descriptors open for the tool. */
static void close_others(const struct tool_attach_recording *a, const struct tool_jail *jail)
{
	const int *outputs = a->maps.outputs;
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

int tool_attach_record(struct tool_attach_recording *a, const struct tool_jail *jail,
		       const struct tool_record_options *options)
{
	int status;

	tool_attach_ask_begin(jail);
	close_others(a, jail);
	status = prepare(a, options);
	if (status == 0) {
		tool_jail_enter(jail);
		status = attach(a, options);
	}
	tool_attach_events_close(a->events);
	tool_attach_heap_free(a->heap);
	tool_attach_waits_free(a->waits);
	tool_attach_space_free(a->space);
	tool_attach_file_free(a->file);
	tool_attach_threads_clear(&a->threads);
	return status;
}
