/* SPDX-License-Identifier: MIT
 *
 * CPU time: the kernel reports a thread, with a copy of its stack, whenever the thread has used an
 * interval.
 */
#include "technique.h"
#include "tracefile/notes.h"

static int prepare(struct tool_attach_run *run)
{
	return tool_attach_events_open(&run->events, run->pid, run->options->interval, false);
}

static int open_file(struct tool_attach_run *run)
{
	run->file = tool_attach_file_new(run->options, run->pid, run->space);
	if (!run->file)
		return TOOL_STATUS_CANNOT_RUN;
	if (!run->options->program[0])
		tool_attach_file_note(run->file, INCSTACK__NOTE_OUTSIDE);
	return 0;
}

static void on_tick(struct tool_attach_run *run, const struct tool_attach_report *report)
{
	struct tool_attach_thread *thread = tool_attach_threads_add(&run->threads, report->tid);

	run->samples++;
	if (!thread) {
		tool_attach_file_lost(run->file, report->time, 1);
		return;
	}
	tool_attach_thread_walk(&run->threads, thread, run->space, &report->stack);
	tool_attach_file_ticks(run->file, thread, report->time, 1, INCSTACK__STATE_RUNNING);
}

static void take(struct tool_attach_run *run, const struct tool_attach_report *report)
{
	if (report->kind == TOOL_ATTACH_TICK)
		on_tick(run, report);
	if (report->kind == TOOL_ATTACH_LOST)
		tool_attach_file_lost(run->file, report->time, report->lost.count);
}

/* All ticks are reported. */
static void account(struct tool_attach_run *run, uint64_t time)
{
	(void)run;
	(void)time;
}

static uint64_t end(struct tool_attach_run *run, uint64_t time, uint64_t cpu_ns, uint64_t lost)
{
	(void)time;
	if (lost > 0)
		tool_attach_file_lost(run->file, tool_record_now(CLOCK_MONOTONIC), lost);
	return cpu_ns;
}

const struct tool_attach_technique tool_attach_ticks = {
	.doing = "sampling",
	.done = "sampled",
	.unit = "samples",
	.prepare = prepare,
	.open = open_file,
	.report = take,
	.account = account,
	.end = end,
};
