/* SPDX-License-Identifier: MIT
 *
 * The threads of the process, each with all that is kept of it.
 */
#ifndef INCSTACK_TOOL_ATTACH_THREADS_H
#define INCSTACK_TOOL_ATTACH_THREADS_H

#include <sys/types.h>

#include "tool/attach/process/walk.h"

/* A trace, or why there is none. */
struct tool_attach_trace {
	enum incstack__tick what;
	struct tool_attach_frame *frames; /* the youngest first */
	size_t count, room;
};

struct tool_attach_thread {
	pid_t tid;
	struct tool_attach_trace trace; /* of what is written of the thread next */
	struct tool_attach_log *log;    /* what the file has of the thread; null: nothing */
	void *own;                      /* what the technique has of the thread; null: nothing */
};

struct tool_attach_threads {
	void *tree;                                          /* by tid */
	struct tool_attach_frame frames[TOOL_ATTACH_FRAMES]; /* of the walk that runs */
};

/* Returns the thread, or null if it is not known. */
struct tool_attach_thread *tool_attach_threads_find(const struct tool_attach_threads *threads,
						    pid_t tid);
/* Returns the thread, also a new one, or null if there is no memory. */
struct tool_attach_thread *tool_attach_threads_add(struct tool_attach_threads *threads, pid_t tid);
/* Also frees `own`, which the technique has allocated as one block. */
void tool_attach_threads_remove(struct tool_attach_threads *threads,
				struct tool_attach_thread *thread);
/* Calls a function for each thread. The function may not add or remove threads. */
void tool_attach_threads_each(const struct tool_attach_threads *threads,
			      void (*call)(void *context, struct tool_attach_thread *thread),
			      void *context);
void tool_attach_threads_clear(struct tool_attach_threads *threads);

/* Walks the stack and keeps the trace. */
void tool_attach_thread_walk(struct tool_attach_threads *threads, struct tool_attach_thread *thread,
			     struct tool_attach_space *space,
			     const struct tool_attach_stack *stack);
/* The same from the caller of a function that has just been entered. */
void tool_attach_thread_walk_callers(struct tool_attach_threads *threads,
				     struct tool_attach_thread *thread,
				     struct tool_attach_space *space,
				     const struct tool_attach_stack *stack);
/* The thread has no trace, for this reason. */
void tool_attach_thread_forget(struct tool_attach_thread *thread, enum incstack__tick why);

#endif
