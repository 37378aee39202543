/* SPDX-License-Identifier: MIT
 *
 * Resets a stack whose known chain cannot be trusted, because the memory of the stack has a new
 * use or because a jump out of a signal handler left an operation half done. Traces that were
 * still open are truncated; nothing else is lost.
 */
#include "barrier.h"
#include "distance.h"
#include "queue.h"
#include "reset.h"

static void cut_open(stack *s, object *o)
{
	uint32_t ends = INCSTACK_OBJECT_BASE | INCSTACK_OBJECT_TRUNCATED;
	bool open = o->flags & OBJECT_GAP || (!o->parent && !(o->flags & ends));
	o->flags &= OBJECT_FLAGS & ~(uint32_t)(OBJECT_BARRIER | OBJECT_GAP);
	o->flags |= INCSTACK_OBJECT_FILLED;
	if (!open)
		return;
	incstack__cut(s, o);
}

/* Counts the traces again. The last trace may have been linked but neither counted nor made the end
 * of the list. */
static void count_traces(stack *s)
{
	s->last = first_trace(s);
	s->samples = s->tally.retrieved;
	for (; *s->last; s->last = (trace **)&(*s->last)->next)
		s->samples++;
}

/* Resets the stack. `restore`: the memory of the stack may be accessed, so slots that hold our
 * thunks are restored. */
void incstack__reset_stack(stack *s, bool restore)
{
	if (!s->runtime) /* the stack `nobody` (retired.c), through whose thunk a return came */
		return;
	incstack__barriers_discard(s, restore);
	for (struct chunk *c = s->arena.first; c; c = c->next) {
		const object *end = chunk_end(&s->arena, c);
		for (object *o = c->objects; o < end; o++)
			cut_open(s, o);
	}
	incstack__arena_mend(&s->arena);
	count_traces(s);
	set_newest(s, NULL);
	incstack__distance_clear_last(s);
	incstack__queue_reset(s);
}

int incstack_stack_forget(struct incstack_stack *s)
{
	if (!s)
		return INCSTACK_EINVAL;
	if (s->owner != thread_self())
		return INCSTACK_ETHREAD;
	incstack__reset_stack(s, false);
	incstack__queue_drop(s);
	s->busy = 0;
	return 0;
}

bool incstack__stack_is_busy(const struct incstack_stack *s)
{
	return s && s->busy;
}
