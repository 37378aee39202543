/* SPDX-License-Identifier: MIT
 *
 * The time that threads spend off a processor. The kernel reports when a thread leaves one, with a copy
 * of its stack, and when it is back. So a thread that waits costs nothing, however long it waits. Its
 * time is divided into ticks, which all have the trace of the place where it waits.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* memrchr, twalk_r, tdestroy */
#endif
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/ask.h"
#include "tool/proc.h"
#include "waits.h"

/* After this time a wait that goes on is written, so that a timeline shows when it was. */
enum { SLICE_NS = 50000000 };
enum { PAGE = 4096, PAGES = 14 };

enum state { STATE_UNKNOWN, STATE_ON, STATE_OFF };

struct thread {
	pid_t tid;
	enum state state;
	uint64_t begin;           /* of what is known of it */
	enum incstack__tick what; /* whether there is a trace, and why not */
	uint64_t since;           /* the time before that was accounted */
	uint64_t part;            /* ns that no tick stands for yet */
	int64_t run;              /* ns on a processor that no tick stands for yet */
	uint64_t read_at;         /* when the tool itself has read its stack; 0: it has not */
	struct tool_attach_frame *frames;
	size_t count;
};

struct tool_attach_waits {
	struct tool_attach_file *file;
	struct tool_attach_space *space;
	uint64_t interval;
	uint64_t begin; /* CLOCK_MONOTONIC */
	uint64_t lived; /* ns, by threads that have ended */
	uint64_t ticks; /* of threads that waited or ran */
	uint64_t looked;
	bool has_lost;  /* reports */
	bool must_look; /* because of that */
	void *threads;
	struct tool_attach_frame frames[TOOL_ATTACH_FRAMES];
};

/* The time up to which the waits of all threads are accounted. */
struct moment {
	struct tool_attach_waits *waits;
	uint64_t time;
	uint64_t least; /* shorter times stay */
	bool is_lost;   /* what follows is not known */
	uint64_t lived;
};

struct tool_attach_waits *tool_attach_waits_new(struct tool_attach_file *file,
						struct tool_attach_space *space, uint64_t interval)
{
	struct tool_attach_waits *waits = calloc(1, sizeof(*waits));

	if (waits == NULL) {
		fprintf(stderr, "incstack: out of memory\n");
		return NULL;
	}
	waits->file = file;
	waits->space = space;
	waits->interval = interval;
	waits->begin = tool_record_now(CLOCK_MONOTONIC);
	return waits;
}

static void free_thread(void *node)
{
	struct thread *thread = node;

	free(thread->frames);
	free(thread);
}

void tool_attach_waits_free(struct tool_attach_waits *waits)
{
	if (waits != NULL)
		tdestroy(waits->threads, free_thread);
	free(waits);
}

static int by_tid(const void *left, const void *right)
{
	const struct thread *a = left;
	const struct thread *b = right;

	return (a->tid > b->tid) - (a->tid < b->tid);
}

/* Returns the thread if it is known, or null. */
static struct thread *find_thread(const struct tool_attach_waits *waits, pid_t tid)
{
	const struct thread key = {.tid = tid};
	struct thread *const *node = tfind(&key, &waits->threads, by_tid);

	return node != NULL ? *node : NULL;
}

/* The first tick comes after a part of an interval that depends on the thread's number, so that
 * short waits are sampled as often as they should be. Returns null if there is no memory. */
static struct thread *add_thread(struct tool_attach_waits *waits, pid_t tid, uint64_t time)
{
	struct thread *thread = calloc(1, sizeof(*thread));

	if (thread == NULL)
		return NULL;
	thread->tid = tid;
	thread->begin = time;
	thread->part = (uint64_t)(uint32_t)tid * 2654435761u % waits->interval;
	if (tsearch(thread, &waits->threads, by_tid) != NULL)
		return thread;
	free(thread);
	return NULL;
}

/* Returns the thread, also a new one, or null if there is no memory. */
static struct thread *thread_of(struct tool_attach_waits *waits, pid_t tid, uint64_t time)
{
	struct thread *thread = find_thread(waits, tid);

	return thread != NULL ? thread : add_thread(waits, tid, time);
}

/* ---- time ----------------------------------------------------------------------------------- */

static void account(struct tool_attach_waits *waits, struct thread *thread, uint64_t until)
{
	const uint64_t ns = until > thread->since ? until - thread->since : 0;
	const uint64_t ticks = (thread->part + ns) / waits->interval;

	thread->part = (thread->part + ns) % waits->interval;
	thread->since += ns;
	waits->ticks += ticks;
	if (ticks > 0)
		tool_attach_file_ticks(waits->file,
				       &(struct tool_attach_block){thread->tid, until, 0, ticks},
				       thread->what, thread->frames, thread->count);
}

static void forget_trace(struct thread *thread, enum incstack__tick why)
{
	thread->what = why;
	thread->count = 0;
}

/* What the tool has read before the thread ran again may be inconsistent. */
static void check_own_reading(struct thread *thread, uint64_t time)
{
	if (time <= thread->read_at)
		forget_trace(thread, INCSTACK__TICK_NO_STACK);
	thread->read_at = 0;
}

/* A report on the thread has come: the time before that is accounted. */
static void change(struct tool_attach_waits *waits, struct thread *thread, enum state state,
		   uint64_t time)
{
	if (thread->state == STATE_OFF) {
		check_own_reading(thread, time);
		account(waits, thread, time);
	} else if (thread->state == STATE_ON && time > thread->since) {
		thread->run += (int64_t)(time - thread->since);
	}
	if (state == STATE_OFF && thread->state != STATE_OFF)
		forget_trace(thread, INCSTACK__TICK_NO_ROOM);
	if (time > thread->since)
		thread->since = time;
	thread->state = state;
}

static void change_of(struct tool_attach_waits *waits, pid_t tid, enum state state, uint64_t time)
{
	struct thread *thread = thread_of(waits, tid, time);

	if (thread != NULL)
		change(waits, thread, state, time);
}

void tool_attach_waits_back(struct tool_attach_waits *waits, pid_t tid, uint64_t time)
{
	change_of(waits, tid, STATE_ON, time);
}

void tool_attach_waits_begin(struct tool_attach_waits *waits, pid_t tid, uint64_t time)
{
	change_of(waits, tid, STATE_OFF, time);
}

/* The kernel's clock for ticks is not exact if a thread runs only some microseconds at a time. */
uint64_t tool_attach_waits_ran(struct tool_attach_waits *waits, pid_t tid, uint64_t time)
{
	struct thread *thread = thread_of(waits, tid, time);
	const int64_t interval = (int64_t)waits->interval;
	const bool was_on = thread != NULL && thread->state == STATE_ON;
	int64_t ticks = 1;

	if (thread != NULL)
		change(waits, thread, STATE_ON, time);
	if (was_on) {
		ticks = (thread->run + interval / 2) / interval;
		thread->run -= ticks * interval;
	}
	waits->ticks += (uint64_t)ticks;
	return (uint64_t)ticks;
}

static void account_one(const void *node, VISIT visit, void *context)
{
	struct thread *thread = *(struct thread *const *)node;
	struct moment *moment = context;

	if (visit != postorder && visit != leaf)
		return;
	if (thread->state == STATE_OFF && moment->time > thread->since &&
	    moment->time - thread->since >= moment->least)
		account(moment->waits, thread, moment->time);
	if (moment->is_lost)
		thread->state = STATE_UNKNOWN;
	moment->lived += moment->time > thread->begin ? moment->time - thread->begin : 0;
}

/* Accounts all waits up to that time and forgets the state of the threads. Returns how long they
 * all have lived. */
static uint64_t all_until(struct tool_attach_waits *waits, uint64_t time)
{
	struct moment moment = {waits, time, 0, true, 0};

	twalk_r(waits->threads, account_one, &moment);
	return waits->lived + moment.lived;
}

uint64_t tool_attach_waits_end(struct tool_attach_waits *waits, uint64_t time, bool has_lost)
{
	const uint64_t lived = all_until(waits, time);
	const uint64_t expected = lived / waits->interval;

	if ((waits->has_lost || has_lost) && expected > waits->ticks)
		tool_attach_file_lost(waits->file, time, expected - waits->ticks);
	return lived;
}

void tool_attach_waits_clear(struct tool_attach_waits *waits, uint64_t time)
{
	waits->lived = all_until(waits, time);
	tdestroy(waits->threads, free_thread);
	waits->threads = NULL;
}

void tool_attach_waits_lost(struct tool_attach_waits *waits, uint64_t time)
{
	all_until(waits, time);
	waits->has_lost = waits->must_look = true;
}

void tool_attach_waits_ended(struct tool_attach_waits *waits, pid_t tid, uint64_t time)
{
	struct thread *thread = find_thread(waits, tid);

	if (thread == NULL)
		return;
	waits->lived += time > thread->begin ? time - thread->begin : 0;
	tdelete(thread, &waits->threads, by_tid);
	free_thread(thread);
}

/* ---- traces --------------------------------------------------------------------------------- */

static void walk(struct tool_attach_waits *waits, struct thread *thread,
		 const struct tool_attach_stack *stack)
{
	struct tool_attach_frame *frames;
	size_t count;

	forget_trace(thread, tool_attach_walk(waits->space, stack, waits->frames, &count));
	if (thread->what != INCSTACK__TICK_TAKEN)
		return;
	frames = reallocarray(thread->frames, count, sizeof(*frames));
	if (frames == NULL) {
		forget_trace(thread, INCSTACK__TICK_NO_ROOM);
		return;
	}
	memcpy(frames, waits->frames, count * sizeof(*frames));
	thread->frames = frames;
	thread->count = count;
}

void tool_attach_waits_left(struct tool_attach_waits *waits,
			    const struct tool_attach_report *report)
{
	struct thread *thread = thread_of(waits, report->tid, report->time);

	if (thread == NULL)
		return;
	change(waits, thread, STATE_OFF, report->time);
	walk(waits, thread, &report->stack);
}

/* ---- threads on which there was no report --------------------------------------------------- */

/* Reads the stack pointer and the pc of a thread that waits in the kernel; they come last. */
static bool read_registers(pid_t tid, struct tool_attach_stack *stack)
{
	char text[256];
	const char *at;

	tool_attach_ask_facts(TOOL_ATTACH_THREAD_CALL, tid, text, sizeof(text));
	at = strrchr(text, ' ');
	if (at != NULL)
		at = memrchr(text, ' ', (size_t)(at - text));
	return at && sscanf(at, " %" SCNx64 " %" SCNx64, &stack->sp, &stack->pc) == 2;
}

/* Returns when the thread was made, or `least` if that was later. The kernel counts it in ticks. */
static uint64_t begin_of(pid_t tid, uint64_t least)
{
	const uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	char text[1024];
	uint64_t begin;

	tool_attach_ask_facts(TOOL_ATTACH_THREAD_NUMBERS, tid, text, sizeof(text));
	begin = tool_proc_number(text, TOOL_PROC_START) * tick_ns;
	return begin > least ? begin : least;
}

/* Reads up to the end of the stack. */
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

/* The frame pointer is not known. A rule that needs it before a callee has saved it finds no caller.
 * The kernel reports if the thread runs during that. */
static void look_at(void *context, pid_t tid)
{
	static unsigned char copy[PAGES * PAGE];
	struct tool_attach_waits *waits = context;
	struct tool_attach_stack stack = {.is_native = true, .copy = copy};
	const uint64_t now = tool_record_now(CLOCK_MONOTONIC);
	struct thread *thread = thread_of(waits, tid, begin_of(tid, waits->begin));

	if (thread == NULL || thread->state != STATE_UNKNOWN || !read_registers(tid, &stack))
		return; /* its wait is known, or it runs */
	stack.bytes = read_stack(stack.sp, copy);
	change(waits, thread, STATE_OFF, now);
	walk(waits, thread, &stack);
	thread->read_at = tool_record_now(CLOCK_MONOTONIC);
}

void tool_attach_waits_look(struct tool_attach_waits *waits)
{
	tool_attach_ask_threads(look_at, waits);
}

/* Reports may have been lost on threads that do not run again for a long time. */
void tool_attach_waits_account(struct tool_attach_waits *waits, uint64_t time)
{
	struct moment moment = {waits, time, SLICE_NS, false, 0};

	twalk_r(waits->threads, account_one, &moment);
	if (!waits->must_look || time - waits->looked < SLICE_NS)
		return;
	waits->looked = time;
	waits->must_look = false;
	tool_attach_waits_look(waits);
}
