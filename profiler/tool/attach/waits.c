/* SPDX-License-Identifier: MIT
 *
 * The technique of incstack cpu --wall: CPU time, and the time that threads spend off a processor.
 * The kernel reports when a thread leaves a processor, with a copy of its stack, and when it is
 * back. So a thread that waits costs nothing, however long it waits. The time of a wait is divided
 * into ticks, which all have the trace of the place where the thread waits, and the state of the thread
 * there (process/cause.c). CPU time comes in ticks of the kernel.
 *
 * Each report on a thread ends a span of time in which the thread was on a processor or off it.
 * change() accounts this span and sets the new state. account() writes long waits before they end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/ask.h"
#include "process/cause.h"
#include "technique.h"
#include "tool/proc.h"
#include "tracefile/notes.h"
#include "tracefile/parts.h"

/* After this time a wait that goes on is written, so that a timeline shows when it was. */
enum { SLICE_NS = 50000000 };
enum { PAGE = 4096, PAGES = 14 };

enum state { STATE_UNKNOWN, STATE_ON, STATE_OFF };

/* What is known of a thread, in CLOCK_MONOTONIC. */
struct wait {
	enum state state;
	uint64_t begin;               /* when its life in the recording began, as far as is known */
	uint64_t since;               /* everything before this time is accounted */
	enum incstack__state why;     /* why the thread is off a processor */
	struct incstack__parts parts; /* off a processor */
	int64_t run;                  /* ns on a processor that no tick stands for yet */
	uint64_t read_at;             /* when the tool itself has read the stack; 0: it has not */
};

struct waits {
	struct tool_attach_run *run;
	uint64_t interval;
	uint64_t begin; /* CLOCK_MONOTONIC */
	uint64_t lived; /* ns that threads which have ended have lived */
	uint64_t ticks; /* of threads that waited or ran */
	uint64_t looked;
	bool has_lost;  /* reports were lost */
	bool must_look; /* at threads without a state, because reports were lost */
};

/* A walk over all threads, which accounts their waits up to a time. */
struct moment {
	struct waits *waits;
	uint64_t time;
	uint64_t least; /* shorter waits are not accounted yet */
	bool is_lost;   /* what the threads do after this time is not known */
	uint64_t lived; /* the result: ns that the threads have lived */
};

/* Returns false if there is no memory. */
static bool begin_thread(const struct waits *waits, struct tool_attach_thread *thread,
			 uint64_t time)
{
	struct wait *wait = calloc(1, sizeof(*wait));

	if (!wait)
		return false;
	wait->begin = time;
	wait->why = INCSTACK__STATE_OTHER;
	incstack__parts_begin(&wait->parts, (uint32_t)thread->tid, waits->interval);
	thread->own = wait;
	return true;
}

/* Returns the thread, also a new one, or null if there is no memory. */
static struct tool_attach_thread *thread_of(struct waits *waits, pid_t tid, uint64_t time)
{
	struct tool_attach_thread *thread = tool_attach_threads_add(&waits->run->threads, tid);

	return thread && (thread->own || begin_thread(waits, thread, time)) ? thread : NULL;
}

/* ---- time ----------------------------------------------------------------------------------- */

/* Accounts a wait up to a time. Writes its whole intervals as ticks, with the thread's trace. */
static void write_ticks(struct waits *waits, struct tool_attach_thread *thread, uint64_t until)
{
	struct wait *wait = thread->own;
	const uint64_t ns = until > wait->since ? until - wait->since : 0;
	const uint64_t ticks = incstack__parts_ticks(&wait->parts, wait->why, ns, waits->interval);

	wait->since += ns;
	waits->ticks += ticks;
	if (ticks > 0)
		tool_attach_file_ticks(waits->run->file, thread, until, ticks, wait->why);
}

/* The thread has run again at this time. If look_at() was still reading its stack then, the copy
 * may be inconsistent, and the trace is given up. */
static void check_own_reading(struct tool_attach_thread *thread, uint64_t time)
{
	struct wait *wait = thread->own;

	if (time <= wait->read_at)
		tool_attach_thread_forget(thread, INCSTACK__TICK_NO_STACK);
	wait->read_at = 0;
}

/* A report on the thread has come, with its new state. Accounts the time before the report. */
static void change(struct waits *waits, struct tool_attach_thread *thread, enum state state,
		   uint64_t time)
{
	struct wait *wait = thread->own;

	if (wait->state == STATE_OFF) {
		check_own_reading(thread, time);
		write_ticks(waits, thread, time);
	} else if (wait->state == STATE_ON && time > wait->since) {
		wait->run += (int64_t)(time - wait->since);
	}
	if (state == STATE_OFF && wait->state != STATE_OFF) {
		tool_attach_thread_forget(thread, INCSTACK__TICK_NO_ROOM);
		wait->why = INCSTACK__STATE_OTHER;
	}
	if (time > wait->since)
		wait->since = time;
	wait->state = state;
}

static void change_of(struct waits *waits, pid_t tid, enum state state, uint64_t time)
{
	struct tool_attach_thread *thread = thread_of(waits, tid, time);

	if (thread)
		change(waits, thread, state, time);
}

/* Returns how many ticks a tick of the kernel stands for. The kernel's clock for ticks is not exact
 * if a thread runs only some microseconds at a time. So the time between the reports decides. */
static uint64_t ticks_of(struct waits *waits, struct tool_attach_thread *thread, uint64_t time)
{
	struct wait *wait = thread->own;
	const int64_t interval = (int64_t)waits->interval;
	const bool was_on = wait->state == STATE_ON;
	int64_t ticks = 1;

	change(waits, thread, STATE_ON, time);
	if (was_on) {
		ticks = (wait->run + interval / 2) / interval;
		wait->run -= ticks * interval;
	}
	waits->ticks += (uint64_t)ticks;
	return (uint64_t)ticks;
}

static void account_thread(void *context, struct tool_attach_thread *thread)
{
	struct moment *moment = context;
	struct wait *wait = thread->own;

	if (!wait)
		return;
	if (wait->state == STATE_OFF && moment->time > wait->since &&
	    moment->time - wait->since >= moment->least)
		write_ticks(moment->waits, thread, moment->time);
	if (moment->is_lost)
		wait->state = STATE_UNKNOWN;
	moment->lived += moment->time > wait->begin ? moment->time - wait->begin : 0;
}

/* Accounts all waits up to the time and forgets the state of the threads. Returns how long all
 * threads have lived, also those that have ended. */
static uint64_t all_until(struct waits *waits, uint64_t time)
{
	struct moment moment = {waits, time, 0, true, 0};

	tool_attach_threads_each(&waits->run->threads, account_thread, &moment);
	return waits->lived + moment.lived;
}

static uint64_t end(struct tool_attach_run *run, uint64_t time, uint64_t cpu_ns, uint64_t lost)
{
	struct waits *waits = run->own;
	const uint64_t lived = all_until(waits, time);
	const uint64_t expected = lived / waits->interval;

	(void)cpu_ns;
	if ((waits->has_lost || lost > 0) && expected > waits->ticks)
		tool_attach_file_lost(run->file, time, expected - waits->ticks);
	return lived;
}

static void forget_thread(void *context, struct tool_attach_thread *thread)
{
	(void)context;
	free(thread->own);
	thread->own = NULL;
}

/* The process runs another program. */
static void on_executed(struct waits *waits, uint64_t time)
{
	waits->lived = all_until(waits, time);
	tool_attach_threads_each(&waits->run->threads, forget_thread, NULL);
}

/* Reports after this time were lost. What a thread did between this time and the next report on it
 * is not known. */
static void on_lost(struct waits *waits, uint64_t time)
{
	all_until(waits, time);
	waits->has_lost = waits->must_look = true;
}

/* The thread has ended. The caller removes it from the threads afterwards. */
static void on_ended(struct waits *waits, pid_t tid, uint64_t time)
{
	const struct tool_attach_thread *thread =
		tool_attach_threads_find(&waits->run->threads, tid);
	const struct wait *wait = thread ? thread->own : NULL;

	if (wait)
		waits->lived += time > wait->begin ? time - wait->begin : 0;
}

/* ---- traces --------------------------------------------------------------------------------- */

static void walk(struct waits *waits, struct tool_attach_thread *thread,
		 const struct tool_attach_stack *stack)
{
	tool_attach_thread_walk(&waits->run->threads, thread, waits->run->space, stack);
}

static void on_left(struct waits *waits, const struct tool_attach_report *report)
{
	struct tool_attach_thread *thread = thread_of(waits, report->tid, report->time);
	struct wait *wait;

	waits->run->samples++;
	if (!thread)
		return;
	change(waits, thread, STATE_OFF, report->time);
	wait = thread->own;
	if (report->stack.is_native)
		wait->why = tool_attach_cause(waits->run->space, report->stack.pc);
	walk(waits, thread, &report->stack);
}

/* This report follows the one with the stack. */
static void on_off(struct waits *waits, const struct tool_attach_report *report)
{
	struct tool_attach_thread *thread = thread_of(waits, report->tid, report->time);
	struct wait *wait;

	if (!thread)
		return;
	change(waits, thread, STATE_OFF, report->time);
	wait = thread->own;
	if (report->is_preempted)
		wait->why = INCSTACK__STATE_RUNNABLE;
}

static void on_tick(struct waits *waits, const struct tool_attach_report *report)
{
	struct tool_attach_thread *thread = thread_of(waits, report->tid, report->time);
	const uint64_t ticks = thread ? ticks_of(waits, thread, report->time) : 0;

	if (ticks == 0)
		return;
	waits->run->samples++;
	walk(waits, thread, &report->stack);
	tool_attach_file_ticks(waits->run->file, thread, report->time, ticks,
			       INCSTACK__STATE_RUNNING);
}

/* ---- threads on which there was no report --------------------------------------------------- */

/* Reads the stack pointer and the pc of a thread that waits in the kernel. They are the last words
 * of /proc/PID/task/TID/syscall. Returns false if the thread runs. */
static bool read_registers(pid_t tid, struct tool_attach_stack *stack)
{
	char text[256];
	const char *at;

	tool_attach_ask_facts(TOOL_ATTACH_THREAD_CALL, tid, text, sizeof(text));
	at = strrchr(text, ' ');
	if (at)
		at = memrchr(text, ' ', (size_t)(at - text));
	return at && sscanf(at, " %" SCNx64 " %" SCNx64, &stack->sp, &stack->pc) == 2;
}

/* Returns the time when the thread was made, but not less than `least`. The kernel tells this time
 * in ticks of its clock. */
static uint64_t begin_of(pid_t tid, uint64_t least)
{
	const uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	char text[1024];
	uint64_t begin;

	tool_attach_ask_facts(TOOL_ATTACH_THREAD_NUMBERS, tid, text, sizeof(text));
	begin = tool_proc_number(text, TOOL_PROC_START) * tick_ns;
	return begin > least ? begin : least;
}

/* Copies the stack from the stack pointer on, at most PAGES pages. Returns how many bytes it
 * copied. */
static size_t read_stack(uint64_t sp, unsigned char *copy)
{
	const int memory = sp <= INT64_MAX ? tool_attach_ask_memory() : -1;
	ssize_t got = -1;

	if (memory >= 0) {
		got = pread(memory, copy, (size_t)PAGES * PAGE - sp % PAGE, (off_t)sp);
		close(memory);
	}
	return got > 0 ? (size_t)got : 0;
}

/* Finds out where a thread waits on which there was no report. The frame pointer of its top frame
 * is not known. So a rule that needs the frame pointer finds no caller, until the walk has passed a
 * frame that has saved it on the stack. If the thread runs while its stack is read, the kernel
 * reports this (check_own_reading). */
static void look_at(void *context, pid_t tid)
{
	static unsigned char copy[PAGES * PAGE];
	struct waits *waits = context;
	struct tool_attach_stack stack = {.is_native = true, .copy = copy};
	const uint64_t now = tool_record_now(CLOCK_MONOTONIC);
	struct tool_attach_thread *thread = thread_of(waits, tid, begin_of(tid, waits->begin));
	struct wait *wait;

	wait = thread ? thread->own : NULL;
	if (!wait || wait->state != STATE_UNKNOWN || !read_registers(tid, &stack))
		return; /* its wait is known, or it runs */
	stack.bytes = read_stack(stack.sp, copy);
	change(waits, thread, STATE_OFF, now);
	wait->why = tool_attach_cause(waits->run->space, stack.pc);
	walk(waits, thread, &stack);
	wait->read_at = tool_record_now(CLOCK_MONOTONIC);
}

/* If reports were lost, looks at the threads without a state. Some of them may not run again for a
 * long time, and until then there is no report on them. */
static void look_again(struct waits *waits, uint64_t time)
{
	if (!waits->must_look || time - waits->looked < SLICE_NS)
		return;
	waits->looked = time;
	waits->must_look = false;
	tool_attach_ask_threads(look_at, waits);
}

/* ---- the technique -------------------------------------------------------------------------- */

static int prepare(struct tool_attach_run *run)
{
	return tool_attach_events_open(&run->events, run->pid, run->options->interval, true);
}

static int begin(struct tool_attach_run *run)
{
	struct waits *waits = calloc(1, sizeof(*waits));

	if (!waits) {
		fprintf(stderr, "incstack: out of memory\n");
		return TOOL_STATUS_CANNOT_RUN;
	}
	waits->run = run;
	waits->interval = run->options->interval;
	waits->begin = tool_record_now(CLOCK_MONOTONIC);
	run->own = waits;
	if (run->is_ours)
		tool_attach_ask_threads(look_at, waits);
	return 0;
}

/* If is_ours, the program ran before the tool came, so its threads may be waiting already.
 * Otherwise the tool runs the program, which has not begun. */
static int open_file(struct tool_attach_run *run)
{
	run->file = tool_attach_file_new(run->options, run->pid, run->space);
	if (!run->file)
		return TOOL_STATUS_CANNOT_RUN;
	if (run->is_ours)
		tool_attach_file_note(run->file, INCSTACK__NOTE_OUTSIDE);
	tool_attach_file_note(run->file, INCSTACK__NOTE_WALL);
	return begin(run);
}

static void take(struct tool_attach_run *run, const struct tool_attach_report *report)
{
	struct waits *waits = run->own;

	switch (report->kind) {
	case TOOL_ATTACH_TICK:
		on_tick(waits, report);
		break;
	case TOOL_ATTACH_LEFT:
		on_left(waits, report);
		break;
	case TOOL_ATTACH_OFF:
		on_off(waits, report);
		break;
	case TOOL_ATTACH_ON:
		change_of(waits, report->tid, STATE_ON, report->time);
		break;
	case TOOL_ATTACH_LOST:
		on_lost(waits, report->lost.since);
		break;
	case TOOL_ATTACH_EXECUTED:
		on_executed(waits, report->time);
		break;
	case TOOL_ATTACH_ENDED:
		on_ended(waits, report->tid, report->time);
		break;
	default:
		break;
	}
}

/* Writes the long waits that have not ended. */
static void account(struct tool_attach_run *run, uint64_t time)
{
	struct waits *waits = run->own;
	struct moment moment = {waits, time, SLICE_NS, false, 0};

	tool_attach_threads_each(&run->threads, account_thread, &moment);
	look_again(waits, time);
}

const struct tool_attach_technique tool_attach_waits = {
	.doing = "sampling",
	.done = "sampled",
	.unit = "samples",
	.prepare = prepare,
	.open = open_file,
	.report = take,
	.account = account,
	.end = end,
};
