/* SPDX-License-Identifier: MIT
 *
 * Profiles a program that runs already, until the user, a time or the program ends that, and reports.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* ppoll */
#endif
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "attach.h"
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

struct attached {
	pid_t pid;
	int pidfd;
	int signals;
	uint64_t limit; /* ns; 0: none */
	uint64_t until; /* CLOCK_MONOTONIC, ns */
	struct tool_attach_events *events;
	struct tool_attach_space *space;
	struct tool_attach_file *file;
	struct tool_attach_heap *heap; /* null: CPU time is sampled */
	struct tool_attach_probe *probes;
	size_t probe_count;
	struct tool_attach_waits *waits; /* null: only CPU time */
	struct tool_attach_child child;  /* the program that is run; pid -1: none */
	int is_held;                     /* it is not the program yet */
	int has_program;                 /* it has not executed another program */
	int main_has_ended;              /* its main thread */
	int changed;                     /* the modules have changed since they were written */
	uint64_t samples;
	struct tool_attach_frame frames[TOOL_ATTACH_FRAMES];
};

/* ---- what the kernel reports --------------------------------------------------------------- */

/* The file has the modules that are mapped now. */
static void write_modules(struct attached *a)
{
	if (a->changed)
		tool_attach_file_modules(a->file, a->space);
	a->changed = 0;
}

static void on_sample(void *context, const struct tool_attach_sample *sample)
{
	struct tool_attach_block tick = {sample->tid, sample->time, 0, 1};
	struct attached *a = context;
	enum incstack__tick what;
	size_t count;

	if (a->is_held)
		return;
	write_modules(a);
	if (a->waits != NULL)
		tick.bytes = tool_attach_waits_ran(a->waits, sample->tid, sample->time);
	if (tick.bytes == 0)
		return;
	what = tool_attach_walk(a->space, sample, a->frames, &count);
	tool_attach_file_ticks(a->file, &tick, what, a->frames, count);
	a->samples++;
}

static void on_lost(void *context, uint64_t since, uint64_t time, uint64_t count)
{
	struct attached *a = context;

	if (a->waits != NULL)
		tool_attach_waits_lost(a->waits, since);
	else
		tool_attach_file_lost(a->file, time, count);
}

static void on_left(void *context, const struct tool_attach_sample *sample)
{
	struct attached *a = context;

	if (a->is_held)
		return;
	write_modules(a);
	tool_attach_waits_left(a->waits, sample);
	a->samples++;
}

static void on_switched(void *context, pid_t tid, uint64_t time, int is_on)
{
	struct attached *a = context;

	if (a->is_held)
		return;
	write_modules(a);
	if (is_on)
		tool_attach_waits_back(a->waits, tid, time);
	else
		tool_attach_waits_begin(a->waits, tid, time);
}

static void on_hit(void *context, const struct tool_attach_hit *hit)
{
	struct attached *a = context;

	if (!a->has_program)
		return;
	write_modules(a);
	tool_attach_heap_hit(a->heap, hit);
	a->samples++;
}

static void on_hits_lost(void *context, enum tool_attach_hit_kind kind, uint64_t count)
{
	struct attached *a = context;

	tool_attach_heap_lost(a->heap, kind, count);
}

static void on_mapped(void *context, const struct tool_attach_mapping *mapping)
{
	struct attached *a = context;

	a->changed |= tool_attach_space_map(a->space, mapping);
}

static void on_executed(void *context, uint64_t time)
{
	struct attached *a = context;

	tool_attach_space_clear(a->space);
	if (a->waits != NULL)
		tool_attach_waits_clear(a->waits, time);
	a->changed = 1;
	a->has_program = 0;
	a->is_held = 0;
}

static void on_ended(void *context, pid_t tid, uint64_t time)
{
	struct attached *a = context;

	if (a->heap != NULL)
		tool_attach_heap_ended(a->heap, tid);
	if (a->waits != NULL)
		tool_attach_waits_ended(a->waits, tid, time);
	a->main_has_ended |= tid == a->pid;
	tool_attach_file_ended(a->file, tid);
}

static void read_events(struct attached *a)
{
	const struct tool_attach_handler handler = {.sample = on_sample,
						    .lost = on_lost,
						    .left = on_left,
						    .switched = on_switched,
						    .hit = on_hit,
						    .hits_lost = on_hits_lost,
						    .mapped = on_mapped,
						    .executed = on_executed,
						    .ended = on_ended,
						    .context = a};

	tool_attach_events_read(a->events, &handler);
}

/* ---- the time in between ---------------------------------------------------------------------- */

/* The kernel removes the breakpoints with the main thread. Usually the whole process ends then, but
 * the other threads may continue. */
static enum end end_of_main_thread(const struct attached *a)
{
	enum { PATIENCE_MS = 1000 };
	struct pollfd process = {a->pidfd, POLLIN, 0};

	return poll(&process, 1, PATIENCE_MS) > 0 ? END_OF_PROCESS : END_OF_MAIN_THREAD;
}

/* Passes a signal on to the program that is run. A signal from the terminal's keys reaches both
 * without this. */
static enum end take_signal(const struct attached *a)
{
	struct signalfd_siginfo info;

	if (a->child.pid < 0)
		return END_BY_USER;
	if (read(a->signals, &info, sizeof(info)) > 0 && info.ssi_signo != SIGINT &&
	    info.ssi_signo != SIGQUIT)
		kill(a->child.pid, (int)info.ssi_signo);
	return END_NOT;
}

static enum end wait_a_while(const struct attached *a)
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
	return a->limit != 0 && tool_record_now(CLOCK_MONOTONIC) >= a->until ? END_OF_TIME
									     : END_NOT;
}

static void show_progress(const struct attached *a, uint64_t start)
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

/* The kernel does not wait for the tool, so a tool that has to wait for a processor loses records. */
static void hurry(const struct attached *a)
{
	enum { PRIORITY = -10 };

	if (a->heap != NULL || a->waits != NULL)
		setpriority(PRIO_PROCESS, 0, PRIORITY); /* which may be forbidden */
}

static enum end run(struct attached *a)
{
	const uint64_t start = tool_record_now(CLOCK_MONOTONIC);
	enum end end;

	a->until = start + a->limit;
	while ((end = wait_a_while(a)) == END_NOT) {
		const uint64_t now = tool_record_now(CLOCK_MONOTONIC);

		read_events(a);
		if (a->waits != NULL)
			tool_attach_waits_account(a->waits, a->events, now);
		show_progress(a, start);
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return end;
}

/* Counts the records for which no buffer had room and that were not reported yet. */
static void add_lost(struct attached *a)
{
	if (a->heap == NULL)
		return;
	for (enum tool_attach_hit_kind kind = 0; kind < TOOL_ATTACH_HIT_KINDS; kind++) {
		const uint64_t lost = tool_attach_probes_lost(a->events, kind);

		if (lost > 0)
			tool_attach_heap_lost(a->heap, kind, lost);
	}
	tool_attach_heap_end(a->heap);
}

static void say_end(const struct attached *a, enum end end)
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

/* Ends the sampling and writes the rest. Returns an exit status. */
static int finish(struct attached *a, enum end end)
{
	const uint64_t end_ns = tool_record_now(CLOCK_MONOTONIC);
	uint64_t cpu_ns;
	uint64_t lost;

	if (a->heap != NULL)
		tool_attach_probes_stop(a->events);
	tool_attach_events_stop(a->events);
	read_events(a);
	if (end == END_OF_PROCESS && a->heap != NULL && !a->has_program)
		end = END_OF_PROGRAM; /* the new program has ended before the tool looked */
	cpu_ns = tool_attach_events_used(a->events, &lost);
	if (a->waits != NULL)
		cpu_ns = tool_attach_waits_end(a->waits, end_ns, lost > 0);
	else if (lost > 0 && a->heap == NULL)
		tool_attach_file_lost(a->file, tool_record_now(CLOCK_MONOTONIC), lost);
	add_lost(a);
	say_end(a, end);
	return tool_attach_file_end(a->file, a->heap == NULL ? cpu_ns : 0) != 0
		       ? TOOL_STATUS_CANNOT_RUN
		       : 0;
}

static void say_begin(const struct attached *a)
{
	if (a->child.pid > 0)
		return;
	fprintf(stderr, "incstack: %s process %d (threads: %zu); %s\n",
		a->heap != NULL ? "recording" : "sampling", (int)a->pid,
		tool_attach_events_threads(a->events),
		a->limit != 0 ? "Ctrl-C ends it early" : "Ctrl-C ends it");
	if (a->heap == NULL && tool_attach_events_only_user(a->events))
		fprintf(stderr, "incstack: time in system calls is not sampled: that needs root or "
				"sysctl kernel.perf_event_paranoid=1\n");
}

static int begin_waits(struct attached *a, const struct tool_record_options *options)
{
	tool_attach_file_note(a->file, INCSTACK__NOTE_WALL);
	a->waits = tool_attach_waits_new(a->file, a->space, a->pid, options->interval);
	if (a->waits == NULL)
		return -1;
	if (!a->is_held)
		tool_attach_waits_look(a->waits, a->events);
	return 0;
}

static int record(struct attached *a, const struct tool_record_options *options)
{
	a->file = tool_attach_file_new(options, a->pid);
	if (a->file == NULL)
		return TOOL_STATUS_CANNOT_RUN;
	tool_attach_file_modules(a->file, a->space);
	if (options->kind == INCSTACK__TRACEFILE_OF_CPU && a->child.pid < 0)
		tool_attach_file_note(a->file, INCSTACK__NOTE_OUTSIDE);
	if (options->kind == INCSTACK__TRACEFILE_OF_HEAP) {
		tool_attach_file_note(a->file, INCSTACK__NOTE_ATTACHED);
		a->heap = tool_attach_heap_new(a->file, a->space);
		if (a->heap == NULL)
			return TOOL_STATUS_CANNOT_RUN;
	}
	if (options->is_wall && begin_waits(a, options) != 0)
		return TOOL_STATUS_CANNOT_RUN;
	say_begin(a);
	hurry(a);
	if (a->child.pid > 0)
		tool_attach_let_go(&a->child);
	return finish(a, run(a));
}

/* ---- begin and end ---------------------------------------------------------------------------- */

/* From here on the signals that would end the tool end the sampling. */
static int take_signals(sigset_t *before)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGQUIT);
	sigprocmask(SIG_BLOCK, &signals, before);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

/* The signals that came so far were meant for the sampling. The next ones end the report. */
static void give_signals_back(const struct attached *a, const sigset_t *before)
{
	struct signalfd_siginfo info;
	struct pollfd fd = {a->signals, POLLIN, 0};

	while (poll(&fd, 1, 0) > 0 && read(a->signals, &info, sizeof(info)) > 0)
		;
	close(a->signals);
	sigprocmask(SIG_SETMASK, before, NULL);
}

static int read_space(struct attached *a)
{
	a->space = tool_attach_space_new(a->pid);
	if (a->space != NULL && tool_attach_space_read(a->space) == 0)
		return 0;
	return tool_attach_refuse(a->pid, "profile", "it has ended");
}

static int open_probes(struct attached *a)
{
	int status = tool_attach_process_may_return(a->pid);

	if (status == 0)
		status = tool_attach_functions_find(a->pid, a->space, &a->probes, &a->probe_count);
	if (status == 0)
		status = tool_attach_probes_open(a->events, a->probes, a->probe_count);
	return status;
}

static int attach(struct attached *a, struct tool_record_options *options, double seconds)
{
	const int is_heap = options->kind == INCSTACK__TRACEFILE_OF_HEAP;
	int status = tool_attach_process(a->pid, &a->pidfd);

	signal(SIGXFSZ, SIG_IGN); /* of this process, not of a program that it runs */
	if (status == 0)
		status = tool_attach_events_open(&a->events, a->pid,
						 is_heap ? 0 : options->interval, options->is_wall);
	if (status == 0)
		status = read_space(a);
	if (status == 0 && is_heap)
		status = open_probes(a);
	if (status == 0)
		status = tool_record_prepare(options);
	a->limit = (uint64_t)(seconds * 1e9);
	if (status == 0)
		status = record(a, options);
	tool_attach_events_close(a->events);
	tool_attach_functions_free(a->probes, a->probe_count);
	tool_attach_heap_free(a->heap);
	tool_attach_waits_free(a->waits);
	tool_attach_space_free(a->space);
	if (a->file != NULL)
		tool_attach_file_free(a->file);
	if (a->pidfd >= 0)
		close(a->pidfd);
	return status;
}

static int launch(struct attached *a, const struct tool_record_options *options,
		  const sigset_t *mask)
{
	const int status = tool_attach_launch(options->program, mask, &a->child);

	a->pid = a->child.pid;
	a->is_held = 1;
	return status;
}

int tool_attach(struct tool_record_options *options, pid_t pid, double seconds)
{
	static struct attached attached;
	const uint64_t start = tool_record_now(CLOCK_REALTIME_COARSE); /* the clock of the header */
	sigset_t before;
	int status;
	int ended;

	attached = (struct attached){.pid = pid,
				     .pidfd = -1,
				     .child = {-1, -1},
				     .signals = take_signals(&before),
				     .has_program = 1};
	status = options->program[0] != NULL ? launch(&attached, options, &before) : 0;
	if (status == 0)
		status = attach(&attached, options, seconds);
	ended = attached.child.pid > 0 ? tool_attach_child_end(&attached.child, options->file) : 0;
	give_signals_back(&attached, &before);
	if (status == 0 && tool_record_report(options, start, NULL) != 0)
		status = TOOL_STATUS_CANNOT_RUN;
	free(options->file);
	return status != 0 ? status : ended;
}
