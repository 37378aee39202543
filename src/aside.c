/* SPDX-License-Identifier: MIT
 *
 * Steps aside for an unwinder whose functions are not known: one that is linked
 * statically into the program or a library. In its search phase, before anything is
 * popped, all return addresses of the thread's stacks are given back, so that the second
 * phase meets no thunk and the personality needs none of its functions.
 */
#include "internal.h"
#include "unwinder.h"

/* The open traces are completed as far as there is memory. The stack goes over to mode
 * validate: a destructor that samples in the second phase must not plant again. The
 * cells stay readable, for the unwinder may stand on a thunk. */
static void lift(stack *s, const uintptr_t *frame)
{
	s->busy = (uintptr_t)frame;
	s->stats.foreign_unwinders++;
	/* Without rules nobody can walk through the unwinder's own frames. */
	if (s->runtime->embedder.find_rule && incstack__known_confirm(s, frame))
		incstack__complete(s, false);
	incstack__lift_all(s, true);
	incstack__mode_use(s, INCSTACK_MODE_VALIDATE);
	leave(s);
}

/* The _Unwind_Resume by which a cleanup has come to the unwinder that called the function
 * of `frame`, or null. */
static void (*find_resume(stack *s, const uintptr_t *frame))(void *)
{
	enum { MOST = 8 }; /* frames of the unwinder */
	struct walker w = {s, ASK_DIRECTLY, false, 0, 0};
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

/* A destructor has planted in the second phase, directly below the handler, and the
 * unwinder takes the thunk for the handler's frame. It must neither stop here nor go on.
 * Asked to resume from here, it passes its own frames, and comes to the same place again,
 * without a thunk there. Returns if that cannot be done. */
void incstack__resume_aside(void *exception, const uintptr_t *frame)
{
	void (*resume)(void *) = NULL;
	uint32_t n = 0;
	stack *s = incstack__barrier_of_thread(&n);
	while (s && !inside(s, (uintptr_t)frame))
		s = incstack__barrier_of_thread(&n);
	if (s && !s->busy && s->runtime->embedder.find_rule) {
		s->busy = (uintptr_t)frame;
		resume = find_resume(s, frame);
		leave(s);
	}
	incstack__step_aside(frame);
	if (resume)
		resume(exception);
}

/* `frame` is that of the function which the unwinder has called. An operation that a
 * signal handler has interrupted must not find another chain than it left: there only
 * the slots are restored. */
void incstack__step_aside(const uintptr_t *frame)
{
	stack *s;
	for (uint32_t n = 0; (s = incstack__barrier_of_thread(&n)) != NULL;)
		if (s->busy)
			incstack__barrier_uncover(s, n);
		else
			lift(s, frame);
}
