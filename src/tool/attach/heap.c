/* SPDX-License-Identifier: MIT
 *
 * Makes allocations from the calls and returns that the kernel reports. Only the outermost call of a
 * thread counts: calloc may call malloc, and realloc may go on as malloc.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* reallocarray */
#endif
#include <stdlib.h>
#include <string.h>

#include "heap.h"
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
	enum incstack__tick what;
	size_t count; /* of its frames */
};

struct thread {
	struct thread *next;
	pid_t tid;
	struct call call;
	struct tool_attach_frame *frames;
	size_t room;
};

struct tool_attach_heap {
	struct tool_attach_file *file;
	struct tool_attach_space *space;
	struct thread *threads; /* the latest first */
	bool has_note;
	struct tool_attach_frame frames[TOOL_ATTACH_FRAMES];
};

static struct thread *thread_of(struct tool_attach_heap *heap, pid_t tid)
{
	struct thread **at = &heap->threads;
	struct thread *thread;

	while (*at != NULL && (*at)->tid != tid)
		at = &(*at)->next;
	thread = *at;
	if (thread != NULL)
		*at = thread->next;
	else
		thread = calloc(1, sizeof(*thread));
	if (thread == NULL)
		return NULL;
	thread->tid = tid;
	thread->next = heap->threads;
	heap->threads = thread;
	return thread;
}

/* ---- the end of a call ---------------------------------------------------------------------- */

static void write_block(const struct tool_attach_heap *heap, const struct thread *thread,
			uint64_t time, uint64_t pointer)
{
	const struct call *call = &thread->call;
	const struct tool_attach_block block = {thread->tid, time, pointer, call->bytes};

	tool_attach_file_alloc(heap->file, &block, call->what, thread->frames, call->count);
}

/* An operator new that has not called malloc: its result is not known. */
static void close_new(struct tool_attach_heap *heap, struct thread *thread)
{
	thread->call.is_open = false;
	write_block(heap, thread, thread->call.time, 0);
	if (!heap->has_note)
		tool_attach_file_note(heap->file, INCSTACK__NOTE_NEW_NOT_FOLLOWED);
	heap->has_note = true;
}

/* No return of the call was or will be seen. */
static void give_up(struct tool_attach_heap *heap, struct thread *thread)
{
	if (!thread->call.is_open)
		return;
	if (thread->call.function == TOOL_ATTACH_NEW) {
		close_new(heap, thread);
		return;
	}
	thread->call.is_open = false;
	tool_attach_file_count(heap->file, INCSTACK__TICK_NO_RECORD, 1);
	if (thread->call.skipped > 0)
		tool_attach_file_dropped(heap->file, thread->call.skipped);
}

static void on_return(struct tool_attach_heap *heap, struct thread *thread,
		      const struct tool_attach_report *report)
{
	const struct tool_attach_hit *hit = &report->hit;
	struct call *call = &thread->call;
	uint64_t pointer = hit->result;

	if (!call->is_open || hit->stack.sp != call->sp + sizeof(uint64_t))
		return; /* of an inner call, or of one that began earlier */
	call->is_open = false;
	if (call->function == TOOL_ATTACH_POSIX_MEMALIGN)
		pointer = (uint32_t)hit->result == 0 ? hit->value : 0;
	if (call->old != 0 && (pointer != 0 || call->bytes == 0))
		tool_attach_file_free_block(heap->file, thread->tid, call->time, call->old);
	if (pointer != 0)
		write_block(heap, thread, report->time, pointer);
}

/* ---- the beginning ---------------------------------------------------------------------------- */

/* Whether a new call is an inner one of the open one. Its stack tells: while a probed function runs,
 * the kernel has its return address, and in its place is one that leads to no code of the program.
 * Operator new keeps its return address. If it goes on as another function by a jump, that one has the
 * same. */
static bool is_inner(const struct tool_attach_heap *heap, const struct call *call,
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
	return tool_attach_space_rule(heap->space, word, false, &rule) == TOOL_ATTACH_NO_CODE;
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

static int keep_frames(struct thread *thread, const struct tool_attach_frame *frames, size_t count)
{
	if (count > thread->room) {
		struct tool_attach_frame *more =
			reallocarray(thread->frames, 2 * count, sizeof(*more));

		if (more == NULL)
			return -1;
		thread->frames = more;
		thread->room = 2 * count;
	}
	if (count > 0)
		memcpy(thread->frames, frames, count * sizeof(*frames));
	return 0;
}

static void on_entry(struct tool_attach_heap *heap, struct thread *thread,
		     const struct tool_attach_report *report)
{
	const struct tool_attach_hit *hit = &report->hit;
	struct call *call = &thread->call;
	const bool is_new = hit->probe == TOOL_ATTACH_NEW;

	if (call->is_open && is_inner(heap, call, &hit->stack)) {
		if (is_new || call->function != TOOL_ATTACH_NEW)
			return;
		call->is_open = false; /* this operator new calls malloc, which counts */
	}
	give_up(heap, thread);
	*call = call_of(report);
	call->what = tool_attach_walk_callers(heap->space, &hit->stack, heap->frames, &call->count);
	if (keep_frames(thread, heap->frames, call->count) != 0)
		call->what = INCSTACK__TICK_NO_ROOM;
}

/* A block that realloc gives back by an inner call counts as realloc's. */
static void on_free(struct tool_attach_heap *heap, struct thread *thread,
		    const struct tool_attach_report *report)
{
	const struct tool_attach_hit *hit = &report->hit;
	struct call *call = &thread->call;

	if (call->is_open && call->function != TOOL_ATTACH_NEW && hit->stack.sp < call->sp) {
		call->skipped++;
		return;
	}
	give_up(heap, thread);
	if (hit->arguments[0] != 0)
		tool_attach_file_free_block(heap->file, thread->tid, report->time,
					    hit->arguments[0]);
}

void tool_attach_heap_hit(struct tool_attach_heap *heap, const struct tool_attach_report *report)
{
	struct thread *thread = thread_of(heap, report->tid);

	if (thread == NULL)
		tool_attach_heap_lost(heap, report->hit.kind, 1);
	else if (report->hit.kind == TOOL_ATTACH_ENTRY)
		on_entry(heap, thread, report);
	else if (report->hit.kind == TOOL_ATTACH_RETURN)
		on_return(heap, thread, report);
	else
		on_free(heap, thread, report);
}

/* ---- what is not seen --------------------------------------------------------------------------- */

/* If returns were lost, every open call may have returned. */
void tool_attach_heap_lost(struct tool_attach_heap *heap, enum tool_attach_hit_kind kind,
			   uint64_t count)
{
	if (kind == TOOL_ATTACH_ENTRY)
		tool_attach_file_count(heap->file, INCSTACK__TICK_NO_ROOM, count);
	else if (kind == TOOL_ATTACH_FREE)
		tool_attach_file_dropped(heap->file, count);
	else
		for (struct thread *i = heap->threads; i != NULL; i = i->next)
			give_up(heap, i);
}

static void remove_first(struct tool_attach_heap *heap)
{
	struct thread *thread = heap->threads;

	give_up(heap, thread);
	heap->threads = thread->next;
	free(thread->frames);
	free(thread);
}

void tool_attach_heap_ended(struct tool_attach_heap *heap, pid_t tid)
{
	if (thread_of(heap, tid) != NULL)
		remove_first(heap);
}

void tool_attach_heap_end(struct tool_attach_heap *heap)
{
	while (heap->threads != NULL)
		remove_first(heap);
}

struct tool_attach_heap *tool_attach_heap_new(struct tool_attach_file *file,
					      struct tool_attach_space *space)
{
	struct tool_attach_heap *heap = calloc(1, sizeof(*heap));

	if (heap != NULL) {
		heap->file = file;
		heap->space = space;
	}
	return heap;
}

void tool_attach_heap_free(struct tool_attach_heap *heap)
{
	struct thread *next;

	for (struct thread *i = heap != NULL ? heap->threads : NULL; i != NULL; i = next) {
		next = i->next;
		free(i->frames);
		free(i);
	}
	free(heap);
}
