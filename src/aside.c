/* SPDX-License-Identifier: MIT
 *
 * Steps aside for an unwinder whose functions are not known: one that is linked
 * statically into the program or a library. In its search phase, before anything is
 * popped, all return addresses of the thread's stacks are given back, so that the second
 * phase meets no thunk and the personality needs none of its functions.
 */
#include "internal.h"

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
