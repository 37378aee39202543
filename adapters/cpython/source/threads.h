/* SPDX-License-Identifier: MIT
 *
 * The frames of each thread as they were at its last sample. A sample finds the frames that are new by the
 * library (incstack/heap.h), and the contexts of these alone.
 */
#ifndef THREADS_H
#define THREADS_H

#include "contexts.h"
#include "marks.h"

/* A frame of the last sample. */
struct step {
	const struct incstack_heap_object *object;
	struct incstack_heap_frame frame;
	uint32_t context; /* THREADS_UNKNOWN: to be looked up */
};

enum { THREADS_UNKNOWN = UINT32_MAX };

/* One for each thread state of Python that has allocated. It belongs to one thread of the system. */
struct thread {
	PyThreadState *state;
	uint64_t id; /* of the state, since addresses are used again */
	struct incstack_heap_stack *stack;
	struct step *steps; /* the outermost frame first */
	size_t depth, room;
	uint32_t walked;            /* frames that the library has asked for in this sample */
	uintptr_t before, youngest; /* the two frames that it asked for last */
	uint64_t freed, copies, forgotten; /* when the steps were written */
	struct marks marks;
	uintptr_t newest_block;         /* allocated last by this thread; 0: not the last event */
	struct thread *next;            /* the other states of the same thread of the system */
	struct thread *older, *younger; /* of all threads */
};

/* Counters of all threads. */
struct threads_counts {
	uint64_t samples, lost, walked, fired, foreign, gone;
};
extern struct threads_counts threads_counts;
extern struct thread *threads; /* the youngest */

/* All are called with the recording's lock. */
bool threads_open(void);
void threads_close(void);
struct thread *threads_find(PyThreadState *state);
uint32_t threads_context(struct thread *t);
void threads_forget_code(void);
struct thread *threads_own(void);

#endif
