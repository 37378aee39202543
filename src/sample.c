/* SPDX-License-Identifier: MIT
 *
 * The sample: a trace, its top frame object, and a walk that stops at the first
 * known frame or at a new barrier (ICPE'15 section 5.2, "Taking a sample").
 */
#include "internal.h"

/* A top inside the trampoline's common entry is the return that it serves: the
 * barrier is passed now, and the frame that will run next is the top. */
static void attribute(stack *s, struct cursor *at)
{
	struct cursor caller = *at;
	if (is_thunk(at->pc)) {
		caller.pc = thunk_cell(at->pc)->resume;
	} else if (!incstack__entry_state(at, &caller)) {
		return;
	}
	object *o = s->newest;
	while (o && (!(o->flags & OBJECT_BARRIER) || o->address < caller.sp))
		o = (object *)o->parent;
	if (o && o->address == caller.sp)
		incstack__barrier_passed(s, o, caller.fp, ASK_NEVER, 0);
	caller.exact = false;
	*at = caller;
}

static bool good(const struct incstack_top *top)
{
	return top && top->pc && (top->sp | top->slot) % sizeof(uintptr_t) == 0;
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

/* The trace and its top are made, and the callers walked over as far as is needed. */
static int take(stack *s, uint64_t id, uint64_t weight, const struct cursor *at, bool interrupted)
{
	trace *t = new_trace(s, id, weight);
	if (!t)
		return INCSTACK_ELIMIT;
	object *o = s->arena.object++;
	*o = (object){NULL, at->pc, at->sp, 0, INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW};
	if (at->exact)
		o->flags |= INCSTACK_OBJECT_EXACT;
	struct walker w = {s, interrupted ? ASK_NEVER : ASK_DIRECTLY, false, UINT32_MAX, 0};
	if (s->mode == INCSTACK_MODE_PATCH)
		w.distance = interrupted && !s->distance.value ? 1 : s->distance.value;
	s->newest = incstack__walk(&w, at, o, s->newest);
	t->old = s->met;
	s->stats.samples++;
	if (s->mode == INCSTACK_MODE_PATCH)
		distance_observe(s, o + 1, s->arena.object);
	return 0;
}

/* In a signal handler: what interrupted the trampoline is a return, and a frame
 * without a rule is refused, for the embedder cannot be asked here. */
static int take_interrupted(stack *s, uint64_t id, uint64_t weight, struct cursor *at)
{
	attribute(s, at);
	uintptr_t address = at->pc - !at->exact;
	bool known = at->pc;
	if (known && s->runtime->embedder.find_rule) {
		known = incstack__rule_find(s->runtime, address);
		if (!known)
			incstack__rule_want(s->runtime, address);
	}
	if (!known) {
		s->stats.lost_unwind++;
		return INCSTACK_EUNWIND;
	}
	return take(s, id, weight, at, true);
}

int incstack_sample(struct incstack_stack *s, uint64_t id, uint64_t weight,
		    const struct incstack_top *top)
{
	int error = enter(s);
	if (error)
		return error;
	if (!good(top)) {
		leave(s);
		return INCSTACK_EINVAL;
	}
	struct cursor at = {.pc = top->pc, .sp = top->sp, .fp = top->fp};
	if (top->flags & INCSTACK_TOP_INTERRUPTED) {
		at.exact = true;
		error = take_interrupted(s, id, weight, &at);
	} else {
		at.exact = top->flags & INCSTACK_TOP_EXACT;
		if (s->limbo)
			incstack__limbo_empty(s);
		if (rules_wanted(s->runtime))
			incstack__rule_learn_wanted(s->runtime);
		error = take(s, id, weight, &at, false);
	}
	leave(s);
	return error;
}
