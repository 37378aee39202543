/* SPDX-License-Identifier: MIT
 *
 * Begins anew on a stack whose known chain cannot be trusted: its memory went to
 * somebody else, or an operation was left in the middle by a jump out of a signal
 * handler. Nothing is lost but what was still open, which is truncated.
 */
#include "internal.h"

/* Whether an operation that began at `operation` is over, if the thread is at sp
 * or will be: what lies below sp in the same stack is gone, and nobody runs on the
 * stack while an operation that began on another one, a signal's, is in progress. */
bool incstack__left_behind(const stack *s, uintptr_t operation, uintptr_t sp)
{
	if (s->anywhere)
		return operation < sp;
	if (sp < s->low || sp > s->high)
		return false;
	return operation < sp || operation >= s->high;
}

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

/* The last one may have been linked, but neither counted nor passed. */
static void count_traces(stack *s)
{
	s->last = first_trace(s);
	s->samples = s->retrieved;
	for (; *s->last; s->last = (trace **)&(*s->last)->next)
		s->samples++;
}

/* restore: the stack may be read, and slots that show our thunks be given back. */
void incstack__forget(stack *s, bool restore)
{
	if (!s->runtime) /* barrier.c: nobody's thunk was passed */
		return;
	incstack__barriers_forget(s, restore);
	for (struct chunk *c = s->arena.first; c; c = c->next) {
		const object *end = chunk_end(&s->arena, c);
		for (object *o = c->objects; o < end; o++)
			cut_open(s, o);
	}
	incstack__arena_mend(&s->arena);
	count_traces(s);
	set_newest(s, NULL);
	incstack__distance_forget(s);
}

int incstack_stack_forget(struct incstack_stack *s)
{
	if (!s)
		return INCSTACK_EINVAL;
	if (s->owner != thread_self())
		return INCSTACK_ETHREAD;
	incstack__forget(s, false);
	s->busy = 0;
	return 0;
}

int incstack_stack_is_busy(const struct incstack_stack *s)
{
	return s && s->busy;
}
