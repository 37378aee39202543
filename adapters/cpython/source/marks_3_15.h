/* SPDX-License-Identifier: MIT
 *
 * The mark of CPython 3.15. The thread state names one frame. When exactly this frame is popped, by a return, an
 * exception or a yield, the interpreter moves the mark to the caller and counts (`last_profiled_frame_seq`). So
 * while the mark is where it was set, all callers of its frame are as they were. If it has moved n frames, they
 * are as they were from there on.
 *
 * The library may have several marks, each on a caller of the marked frame; they are only remembered here. A frame that
 * the mark has passed is a return that the library is told late. That is right because all its callers are known.
 *
 * The mark says nothing once it is on a shim, which the interpreter pops without a look at the mark.
 */
#ifndef MARKS_3_15_H
#define MARKS_3_15_H

#define MARKS_MODE INCSTACK_HEAP_BARRIER

/* A frame that the library has marked. */
struct marked {
	uintptr_t name;
	size_t place; /* in the thread's steps */
};

struct marks {
	struct marked *set; /* the oldest first */
	uint32_t count, room;
	uint32_t next;    /* how many are older than the frame where a walk is */
	uintptr_t on;     /* the frame with the interpreter's mark, if we have set it; 0: none */
	uintptr_t seq;    /* the interpreter's count then */
	size_t place;     /* of the frame in the thread's steps */
	uint32_t refused; /* frames that could not have a mark, in this sample */
	bool is_new;      /* set in this sample, so that its place is not known yet */
	bool is_foreign;  /* the interpreter's mark is somebody else's */
};

/* A walk has come to the frame: whether it is the next one with a mark of the library. */
static inline bool marks_is_next(struct marks *marks, uintptr_t name)
{
	if (!marks->next || marks->set[marks->next - 1].name != name)
		return false;
	marks->next--;
	return true;
}

int marks_set(struct thread *t, uintptr_t name, int on);
void marks_look(struct thread *t);
void marks_place(struct thread *t);
void marks_lift(struct thread *t);
void marks_free(struct marks *marks);

#endif
