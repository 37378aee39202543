/* SPDX-License-Identifier: MIT
 *
 * Whether frames can have marks, by which a sample need not look at all frames. CPython 3.15 has a mark;
 * without it, each sample compares all frames.
 */
#ifndef MARKS_H
#define MARKS_H

#include "frames/frames.h"

struct thread;

/* In each version:
 *   marks_is_next   a walk has come to a frame: whether it has a mark of the library
 *   marks_set       the library sets or clears a mark; negative: the frame cannot have one
 *   marks_look      before a sample: what has become of the marks
 *   marks_place     after it, when the thread's steps are written
 *   marks_lift      at the end: no mark is left in Python */
#if PY_VERSION_HEX >= 0x030f0000
#include "marks_3_15.h"
#else

#define MARKS_MODE INCSTACK_HEAP_VALIDATE

struct marks {
	char none;
};

static inline bool marks_is_next(struct marks *marks, uintptr_t name)
{
	return (void)marks, (void)name, false;
}

static inline int marks_set(struct thread *t, uintptr_t name, int on)
{
	return (void)t, (void)name, (void)on, -1;
}

static inline void marks_look(struct thread *t)
{
	(void)t;
}

static inline void marks_place(struct thread *t)
{
	(void)t;
}

static inline void marks_lift(struct thread *t)
{
	(void)t;
}

static inline void marks_free(struct marks *marks)
{
	(void)marks;
}

#endif
#endif
