/* SPDX-License-Identifier: MIT
 *
 * Steps aside for an unwinder whose functions cannot be found because it is linked statically
 * into the program or a library. In the unwinder's search phase, before any frame is popped,
 * all return addresses of the thread's stacks are restored. So the second phase meets no
 * thunk, and the personality routine needs none of the unwinder's functions.
 */
#include "aside.h"
#include "barrier.h"
#include "mode.h"
#include "operation.h"
#include "retrieve.h"
#include "unwind.h"
#include "unwinder.h"
#include "walk.h"

/* Lifts all barriers of s. The open traces are completed as far as there is memory. The stack
 * changes to mode validate, because a destructor that samples in the second phase must not
 * plant a barrier. The cells stay readable, because the unwinder may be at a thunk. */
static void lift(stack *s, const uintptr_t *frame)
{
	s->busy = (uintptr_t)frame;
	s->stats.foreign_unwinders++;
	/* A walk through the unwinder's own frames needs unwind rules. */
	if (s->runtime->embedder.code.find_rule && s->kind->remove_popped(s, frame))
		incstack__complete(s, false);
	incstack__lift_all(s, true);
	incstack__mode_use(s, INCSTACK_MODE_VALIDATE);
	leave(s);
}

/* Returns the _Unwind_Resume through which a cleanup entered the unwinder that called the
 * function of `frame`, or null. */
static void (*find_resume(stack *s, const uintptr_t *frame))(void *)
{
	enum { MOST = 8 }; /* frames that the unwinder may have */
	const struct stepper w = stepper_of(s, ASK_DIRECTLY);
	struct cursor at = {.pc = frame[1], .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
	enum step step = STEP_FRAME;
	void (*resume)(void *) = NULL;
	for (int i = 0; i < MOST && step == STEP_FRAME; i++) {
		uintptr_t slot;
		packed_rule rule;
		if (incstack__unwinder_resumed(at.pc, frame[1], &resume))
			break;
		step = incstack__step(&w, &at, &slot, &rule);
	}
	return resume;
}

/* A destructor has planted a barrier in the second phase, and the handler is in the frame that the
 * barrier guards. The unwinder takes the thunk for the handler's frame. It must neither stop at the
 * thunk nor pass it. Its _Unwind_Resume, called from here, passes the unwinder's own frames and
 * comes to the frame of the handler again, where no thunk is left. This function returns only if
 * that is impossible. */
void incstack__resume_aside(void *exception, const uintptr_t *frame)
{
	void (*resume)(void *) = NULL;
	uint32_t n = 0;
	stack *s = incstack__barrier_of_thread(&n);
	while (s && !inside(s, (uintptr_t)frame))
		s = incstack__barrier_of_thread(&n);
	if (s && !s->busy && s->runtime->embedder.code.find_rule) {
		s->busy = (uintptr_t)frame;
		resume = find_resume(s, frame);
		leave(s);
	}
	incstack__step_aside(frame);
	if (resume)
		resume(exception);
}

/* Restores the return addresses of all stacks of the thread. `frame` is the frame of the
 * function that the unwinder has called. If a signal handler interrupted an operation on a
 * stack, the operation must find its chain unchanged, so only the slots are restored. */
void incstack__step_aside(const uintptr_t *frame)
{
	stack *s;
	for (uint32_t n = 0; (s = incstack__barrier_of_thread(&n)) != NULL;)
		if (s->busy)
			incstack__barrier_uncover(s, n);
		else
			lift(s, frame);
}
