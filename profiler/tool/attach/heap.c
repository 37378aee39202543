/* SPDX-License-Identifier: MIT
 *
 * Makes allocations from the calls and returns that the kernel reports. Only the outermost call of a
 * thread counts: calloc may call malloc, and realloc may go on as malloc.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/outputs.h"
#include "kernel/sandbox.h"
#include "technique.h"
#include "tracefile/notes.h"

/* A call that has not returned yet. */
struct call {
	bool is_open;
	enum tool_attach_function function;
	uint64_t time;
	uint64_t pc;
	uint64_t sp; /* where its return address is */
	uint64_t bytes;
	uint64_t old;     /* the block that realloc takes; of operator new, the return address */
	uint64_t skipped; /* deallocations inside of it */
};

/* Returns the thread, also a new one, or null if there is no memory. */
static struct tool_attach_thread *thread_of(struct tool_attach_run *run, pid_t tid)
{
	struct tool_attach_thread *thread = tool_attach_threads_add(&run->threads, tid);

	if (thread && !thread->own)
		thread->own = calloc(1, sizeof(struct call));
	return thread && thread->own ? thread : NULL;
}

/* ---- the end of a call ---------------------------------------------------------------------- */

static void write_block(const struct tool_attach_run *run, struct tool_attach_thread *thread,
			uint64_t time, uint64_t pointer)
{
	const struct call *call = thread->own;
	const struct tool_attach_block block = {time, pointer, call->bytes};

	tool_attach_file_alloc(run->file, thread, &block);
}

/* An operator new that has not called malloc: its result is not known. */
static void close_new(struct tool_attach_run *run, struct tool_attach_thread *thread)
{
	struct call *call = thread->own;

	call->is_open = false;
	write_block(run, thread, call->time, 0);
	tool_attach_file_note(run->file, INCSTACK__NOTE_NEW_NOT_FOLLOWED);
}

/* No return of the call was or will be seen. */
static void give_up(void *context, struct tool_attach_thread *thread)
{
	struct tool_attach_run *run = context;
	struct call *call = thread->own;

	if (!call || !call->is_open)
		return;
	if (call->function == TOOL_ATTACH_NEW) {
		close_new(run, thread);
		return;
	}
	call->is_open = false;
	tool_attach_file_count(run->file, INCSTACK__TICK_NO_RECORD, 1);
	if (call->skipped > 0)
		tool_attach_file_dropped(run->file, call->skipped);
}

static void on_return(struct tool_attach_run *run, struct tool_attach_thread *thread,
		      const struct tool_attach_report *report)
{
	const struct tool_attach_hit *hit = &report->hit;
	struct call *call = thread->own;
	uint64_t pointer = hit->result;

	if (!call->is_open || hit->stack.sp != call->sp + sizeof(uint64_t))
		return; /* of an inner call, or of one that began earlier */
	call->is_open = false;
	if (call->function == TOOL_ATTACH_POSIX_MEMALIGN)
		pointer = (uint32_t)hit->result == 0 ? hit->value : 0;
	if (call->old != 0 && (pointer != 0 || call->bytes == 0))
		tool_attach_file_free_block(run->file, thread, call->time, call->old);
	if (pointer != 0)
		write_block(run, thread, report->time, pointer);
}

/* ---- the beginning ---------------------------------------------------------------------------- */

/* Whether a new call is an inner one of the open one. Its stack tells: while a probed function runs,
 * the kernel has its return address, and in its place is one that leads to no code of the program.
 * Operator new keeps its return address. If it goes on as another function by a jump, that one has the
 * same. */
static bool is_inner(const struct tool_attach_run *run, const struct call *call,
		     const struct tool_attach_stack *at)
{
	const uint64_t offset = call->sp - at->sp;
	struct incstack_rule rule;
	uint64_t word;

	if (at->sp > call->sp)
		return false;
	if (offset >= at->bytes || at->bytes - offset < sizeof(word))
		return true;
	memcpy(&word, at->copy + offset, sizeof(word));
	if (call->function == TOOL_ATTACH_NEW)
		return word == call->old && (offset > 0 || at->pc != call->pc);
	return tool_attach_space_rule(run->space, word, false, &rule) == TOOL_ATTACH_NO_CODE;
}

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t bytes;

	return __builtin_mul_overflow(a, b, &bytes) ? UINT64_MAX : bytes;
}

static struct call call_of(const struct tool_attach_report *report)
{
	const struct tool_attach_hit *hit = &report->hit;
	struct call call = {
		.is_open = true,
		.function = (enum tool_attach_function)hit->probe,
		.time = report->time,
		.pc = hit->stack.pc,
		.sp = hit->stack.sp,
		.bytes = hit->arguments[0],
	};

	switch (call.function) {
	case TOOL_ATTACH_CALLOC:
		call.bytes = product(hit->arguments[0], hit->arguments[1]);
		break;
	case TOOL_ATTACH_REALLOC:
		call.old = hit->arguments[0];
		call.bytes = hit->arguments[1];
		break;
	case TOOL_ATTACH_ALIGNED:
		call.bytes = hit->arguments[1];
		break;
	case TOOL_ATTACH_POSIX_MEMALIGN:
		call.bytes = hit->arguments[2];
		break;
	case TOOL_ATTACH_NEW:
		if (hit->stack.bytes >= sizeof(call.old))
			memcpy(&call.old, hit->stack.copy, sizeof(call.old));
		break;
	default:
		break;
	}
	return call;
}

static void on_entry(struct tool_attach_run *run, struct tool_attach_thread *thread,
		     const struct tool_attach_report *report)
{
	const struct tool_attach_hit *hit = &report->hit;
	struct call *call = thread->own;
	const bool is_new = hit->probe == TOOL_ATTACH_NEW;

	if (call->is_open && is_inner(run, call, &hit->stack)) {
		if (is_new || call->function != TOOL_ATTACH_NEW)
			return;
		call->is_open = false; /* this operator new calls malloc, which counts */
	}
	give_up(run, thread);
	*call = call_of(report);
	tool_attach_thread_walk_callers(&run->threads, thread, run->space, &hit->stack);
}

/* A block that realloc gives back by an inner call counts as realloc's. */
static void on_free(struct tool_attach_run *run, struct tool_attach_thread *thread,
		    const struct tool_attach_report *report)
{
	const struct tool_attach_hit *hit = &report->hit;
	struct call *call = thread->own;

	if (call->is_open && call->function != TOOL_ATTACH_NEW && hit->stack.sp < call->sp) {
		call->skipped++;
		return;
	}
	give_up(run, thread);
	if (hit->arguments[0] != 0)
		tool_attach_file_free_block(run->file, thread, report->time, hit->arguments[0]);
}

/* ---- what is not seen --------------------------------------------------------------------------- */

/* If returns were lost, every open call may have returned. */
static void on_lost(struct tool_attach_run *run, enum tool_attach_hit_kind kind, uint64_t count)
{
	if (kind == TOOL_ATTACH_ENTRY)
		tool_attach_file_count(run->file, INCSTACK__TICK_NO_ROOM, count);
	else if (kind == TOOL_ATTACH_FREE)
		tool_attach_file_dropped(run->file, count);
	else
		tool_attach_threads_each(&run->threads, give_up, run);
}

static void on_hit(struct tool_attach_run *run, const struct tool_attach_report *report)
{
	struct tool_attach_thread *thread = thread_of(run, report->tid);

	if (!thread)
		on_lost(run, report->hit.kind, 1);
	else if (report->hit.kind == TOOL_ATTACH_ENTRY)
		on_entry(run, thread, report);
	else if (report->hit.kind == TOOL_ATTACH_RETURN)
		on_return(run, thread, report);
	else
		on_free(run, thread, report);
}

static void on_ended(struct tool_attach_run *run, pid_t tid)
{
	struct tool_attach_thread *thread = tool_attach_threads_find(&run->threads, tid);

	if (thread)
		give_up(run, thread);
}

/* ---- the technique -------------------------------------------------------------------------- */

/* The kernel takes no samples of its own. */
static int prepare(struct tool_attach_run *run)
{
	int status = tool_attach_events_open(&run->events, run->pid, 0, false);

	if (status == 0)
		status = tool_attach_process_may_return(run->pid);
	if (status == 0)
		tool_attach_outputs_open(run->events, &run->maps);
	return status;
}

static int open_probes(const struct tool_attach_run *run)
{
	struct tool_attach_wanted *wanted;
	size_t count;
	int status = tool_attach_functions_find(run->pid, run->space, &wanted, &count);

	if (status == 0)
		status = tool_attach_hits_open(run->events, wanted, count);
	free(wanted);
	return status;
}

static int open_all(struct tool_attach_run *run)
{
	const int status = open_probes(run);

	if (status != 0)
		return status;
	run->file = tool_attach_file_new(run->options, run->pid, run->space);
	if (!run->file)
		return TOOL_STATUS_CANNOT_RUN;
	tool_attach_file_note(run->file, INCSTACK__NOTE_ATTACHED);
	return 0;
}

static void take(struct tool_attach_run *run, const struct tool_attach_report *report)
{
	switch (report->kind) {
	case TOOL_ATTACH_HIT:
		on_hit(run, report);
		run->samples++;
		break;
	case TOOL_ATTACH_HITS_LOST:
		on_lost(run, report->hits_lost.kind, report->hits_lost.count);
		break;
	case TOOL_ATTACH_LOST:
		tool_attach_file_lost(run->file, report->time, report->lost.count);
		break;
	case TOOL_ATTACH_ENDED:
		on_ended(run, report->tid);
		break;
	default:
		break;
	}
}

/* All calls are reported. */
static void account(struct tool_attach_run *run, uint64_t time)
{
	(void)run;
	(void)time;
}

/* Counts the hits for which no buffer had room and that were not reported yet. Allocations take no time. */
static uint64_t end(struct tool_attach_run *run, uint64_t time, uint64_t cpu_ns, uint64_t lost)
{
	(void)time;
	(void)cpu_ns;
	(void)lost;
	for (enum tool_attach_hit_kind kind = 0; kind < TOOL_ATTACH_HIT_KINDS; kind++) {
		const uint64_t count = tool_attach_hits_lost(run->events, kind);

		if (count > 0)
			on_lost(run, kind, count);
	}
	tool_attach_threads_each(&run->threads, give_up, run);
	if (run->options->is_resident)
		tool_attach_file_moment(run->file);
	return 0;
}

const struct tool_attach_technique tool_attach_heap = {
	.doing = "recording",
	.done = "recorded",
	.unit = "calls",
	.has_probes = true,
	.prepare = prepare,
	.open = open_all,
	.report = take,
	.account = account,
	.end = end,
};
