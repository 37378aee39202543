/* SPDX-License-Identifier: MIT
 *
 * The sample: a trace, its top frame object, and a walk that stops at the first
 * known frame or at a new barrier (ICPE'15 section 5.2, "Taking a sample").
 */
#include "internal.h"

/* A top inside the trampoline's common entry is the return that it serves: the
 * barrier is passed now, and the frame that will run next is the top. */
static bool attribute(stack *s, struct cursor *at)
{
	struct cursor caller = *at;
	if (is_thunk(at->pc)) {
		caller.pc = thunk_cell(at->pc)->resume;
	} else if (!incstack__entry_state(at, &caller)) {
		return false;
	}
	object *o = s->newest;
	while (o && !(o->flags & OBJECT_BARRIER))
		o = (object *)o->parent;
	if (o && o->address == caller.sp)
		incstack__barrier_passed(s, o, caller.fp, ASK_NEVER, 0);
	caller.exact = false;
	*at = caller;
	return true;
}

static int check(const struct incstack_top *top)
{
	if (!top || !top->pc || top->sp % sizeof(uintptr_t) || top->slot % sizeof(uintptr_t))
		return INCSTACK_EINVAL;
	return 0;
}

static trace *new_trace(stack *s, uint64_t id, uint64_t weight)
{
	if (!arena_fits(s, 2) && !incstack__arena_next(s)) {
		s->stats.lost_limit++;
		return NULL;
	}
	trace *t = --s->arena.limit;
	*t = (trace){NULL, id, weight, s->arena.object, NULL};
	*s->last = t;
	s->last = (trace **)&t->next;
	return t;
}

static int take(stack *s, uint64_t id, uint64_t weight, struct cursor at, bool interrupted)
{
	trace *t = new_trace(s, id, weight);
	if (!t)
		return INCSTACK_ELIMIT;
	object *o = s->arena.object++;
	*o = (object){NULL, at.pc, at.sp, 0,
		      INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW |
			      (at.exact ? INCSTACK_OBJECT_EXACT : 0)};
	object *known = s->mode == INCSTACK_MODE_FULL ? NULL : s->newest;
	struct walker w = {s, interrupted ? ASK_NEVER : ASK_DIRECTLY, false, s->distance.value, 0};
	if (interrupted && !w.distance)
		w.distance = 1;
	object *head = incstack__walk(&w, at, o, known);
	s->newest = s->mode == INCSTACK_MODE_FULL ? NULL : head;
	t->old = s->met;
	s->stats.samples++;
	return 0;
}

static bool has_rule(const stack *s, const struct cursor *at, bool interrupted)
{
	if (!s->runtime->embedder.find_rule || !interrupted)
		return true;
	return incstack__rule_find(s->runtime, at->pc - !at->exact) != 0;
}

int incstack_sample(struct incstack_stack *s, uint64_t id, uint64_t weight,
		    const struct incstack_top *top)
{
	int error = incstack__enter(s);
	if (error)
		return error;
	error = check(top);
	if (!error) {
		bool interrupted = top->flags & INCSTACK_TOP_INTERRUPTED;
		struct cursor at = {.pc = top->pc, .sp = top->sp, .fp = top->fp};
		at.exact = top->flags & (INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED);
		if (interrupted)
			interrupted = !attribute(s, &at) || interrupted;
		else
			incstack__limbo_empty(s);
		if (!has_rule(s, &at, interrupted)) {
			s->stats.lost_unwind++;
			error = INCSTACK_EUNWIND;
		} else {
			error = take(s, id, weight, at, interrupted);
		}
	}
	leave(s);
	return error;
}
