/* SPDX-License-Identifier: MIT
 *
 * The general walk over the frames of a stack.
 */
#ifndef INCSTACK__WALK_H
#define INCSTACK__WALK_H

#include "unwind.h"

/* The progress of a walk. */
struct path {
	struct cursor at;
	object *child;    /* the object of the frame `at` */
	object *known;    /* the youngest object that the walk may still meet */
	object *head;     /* the youngest caller made on this stack, for validate to remember */
	uint32_t n;       /* callers that were made */
	bool interrupted; /* whether a signal interrupted the frame `at` */
	bool here;     /* whether the walk has reached this stack; still false on a signal stack */
	bool no_thunk; /* no thunk could be had, so do not ask again */
	bool guessed;  /* whether the last step was by a rule that is a guess */
	uint32_t guesses; /* such steps */
	packed_rule rule; /* of the frame whose return the barrier would intercept */
};
object *incstack__gap_fill(const struct walker *w, object *o, uintptr_t fp);
object *incstack__finish_return(const struct walker *w, object **known, const struct cursor *at);
object *incstack__machine_walk(const struct walker *w, struct path *p);
bool incstack__machine_remove_popped(stack *s, const uintptr_t *frame);
bool incstack__machine_remove_popped_at(stack *s, const struct incstack_top *top);

/* Makes the objects of the callers of p->child, which is the object of the frame p->at, and
 * links them to the known chain. Returns the head of the resulting known chain: the youngest
 * object that a later walk may meet. */
static inline object *walk_callers(const struct walker *w, struct path *p)
{
	return w->stack->kind->walk(w, p);
}

#endif
