/* SPDX-License-Identifier: MIT
 *
 * Keeps the threads of the process in a tree, by their ids. A process may have thousands of threads, and
 * each switch of a processor is a report on two of them.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "threads.h"

/* ---- the tree ------------------------------------------------------------------------------- */

static int by_tid(const void *left, const void *right)
{
	const struct tool_attach_thread *a = left;
	const struct tool_attach_thread *b = right;

	return (a->tid > b->tid) - (a->tid < b->tid);
}

struct tool_attach_thread *tool_attach_threads_find(const struct tool_attach_threads *threads,
						    pid_t tid)
{
	const struct tool_attach_thread key = {.tid = tid};
	struct tool_attach_thread *const *node = tfind(&key, &threads->tree, by_tid);

	return node ? *node : NULL;
}

static struct tool_attach_thread *insert(struct tool_attach_threads *threads, pid_t tid)
{
	struct tool_attach_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->tid = tid;
	tool_attach_thread_forget(thread, INCSTACK__TICK_NO_RECORD);
	if (tsearch(thread, &threads->tree, by_tid))
		return thread;
	free(thread);
	return NULL;
}

struct tool_attach_thread *tool_attach_threads_add(struct tool_attach_threads *threads, pid_t tid)
{
	struct tool_attach_thread *thread = tool_attach_threads_find(threads, tid);

	return thread ? thread : insert(threads, tid);
}

static void free_thread(void *node)
{
	struct tool_attach_thread *thread = node;

	free(thread->trace.frames);
	free(thread->own);
	free(thread);
}

void tool_attach_threads_remove(struct tool_attach_threads *threads,
				struct tool_attach_thread *thread)
{
	tdelete(thread, &threads->tree, by_tid);
	free_thread(thread);
}

void tool_attach_threads_clear(struct tool_attach_threads *threads)
{
	tdestroy(threads->tree, free_thread);
	threads->tree = NULL;
}

struct visitor {
	void (*call)(void *context, struct tool_attach_thread *thread);
	void *context;
};

static void visit_node(const void *node, VISIT visit, void *closure)
{
	const struct visitor *visitor = closure;

	if (visit == postorder || visit == leaf)
		visitor->call(visitor->context, *(struct tool_attach_thread *const *)node);
}

void tool_attach_threads_each(const struct tool_attach_threads *threads,
			      void (*call)(void *context, struct tool_attach_thread *thread),
			      void *context)
{
	struct visitor visitor = {call, context};

	twalk_r(threads->tree, visit_node, &visitor);
}

/* ---- traces --------------------------------------------------------------------------------- */

void tool_attach_thread_forget(struct tool_attach_thread *thread, enum incstack__tick why)
{
	thread->trace.what = why;
	thread->trace.count = 0;
}

static bool make_room(struct tool_attach_trace *trace, size_t count)
{
	struct tool_attach_frame *more;

	if (count <= trace->room)
		return true;
	more = reallocarray(trace->frames, 2 * count, sizeof(*more));
	if (!more)
		return false;
	trace->frames = more;
	trace->room = 2 * count;
	return true;
}

static void keep(struct tool_attach_thread *thread, enum incstack__tick what,
		 const struct tool_attach_frame *frames, size_t count)
{
	struct tool_attach_trace *trace = &thread->trace;

	tool_attach_thread_forget(thread, what);
	if (what != INCSTACK__TICK_TAKEN)
		return;
	if (!make_room(trace, count)) {
		trace->what = INCSTACK__TICK_NO_ROOM;
		return;
	}
	memcpy(trace->frames, frames, count * sizeof(*frames));
	trace->count = count;
}

void tool_attach_thread_walk(struct tool_attach_threads *threads, struct tool_attach_thread *thread,
			     struct tool_attach_space *space, const struct tool_attach_stack *stack)
{
	size_t count;
	const enum incstack__tick what = tool_attach_walk(space, stack, threads->frames, &count);

	keep(thread, what, threads->frames, count);
}

void tool_attach_thread_walk_callers(struct tool_attach_threads *threads,
				     struct tool_attach_thread *thread,
				     struct tool_attach_space *space,
				     const struct tool_attach_stack *stack)
{
	size_t count;
	const enum incstack__tick what =
		tool_attach_walk_callers(space, stack, threads->frames, &count);

	keep(thread, what, threads->frames, count);
}
