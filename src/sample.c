/* SPDX-License-Identifier: MIT
 *
 * The sample: a trace, its top frame object, and a walk that stops at the first
 * known frame or at a new barrier (ICPE'15 section 5.2, "Taking a sample").
 */
#include "internal.h"
#include "run.h"

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

static bool good(const stack *s, const struct incstack_top *top)
{
	if (!top)
		return false;
	if (__builtin_expect(s->by_embedder, 0))
		return top->sp && !(top->flags & INCSTACK_TOP_INTERRUPTED);
	return top->pc && (top->sp | top->slot) % sizeof(uintptr_t) == 0 &&
	       !(top->flags & INCSTACK_TOP_DECODE_NOW);
}

static inline trace *new_trace(stack *s, uint64_t id, uint64_t weight)
{
	if (__builtin_expect(!arena_fits(s, 2), 0) && !incstack__arena_next(s)) {
		s->stats.lost_limit++;
		return NULL;
	}
	trace *t = --s->arena.limit;
	t->next = NULL;
	t->id = id;
	t->weight = weight;
	return t;
}

/* Last: a sample that a longjmp out of a handler ends has left no trace (I8). */
static inline void add_trace(stack *s, trace *t)
{
	atomic_signal_fence(memory_order_seq_cst);
	*s->last = t;
	s->last = (trace **)&t->next;
	s->stats.samples++;
}

/* Everything but a barrier within reach of a run. */
__attribute__((noinline)) static void walk(stack *s, object *top, const struct cursor *at,
					   struct reach r, uint32_t distance, bool interrupted)
{
	struct walker w = {s, interrupted ? ASK_NEVER : ASK_DIRECTLY, false, distance, 0};
	struct path p = {.at = *at, .child = top, .known = s->newest, .here = inside(s, at->sp)};
	set_newest(s, s->by_embedder ? incstack__frames_walk(&w, at, top, s->newest)
				     : incstack__walk_on(&w, &p, r));
}

/* A full walk that came to the outermost frame. */
static inline void link_base(stack *s, object *top, struct reach r)
{
	*r.end = (object){NULL, r.ahead.pc, r.ahead.sp, -1,
			  INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW | INCSTACK_OBJECT_BASE};
	s->met = NULL;
	s->stats.walked += (uint64_t)(r.end - top) + 1;
	commit(s, top, r.end + 1, NULL);
}

/* The trace and its top are made, and the callers walked over as far as is needed. */
__attribute__((always_inline)) static inline int take(stack *s, uint64_t id, uint64_t weight,
						      struct cursor at, bool interrupted)
{
	trace *t = new_trace(s, id, weight);
	if (!t)
		return INCSTACK_ELIMIT;
	object *top = s->arena.object;
	top->parent = NULL;
	top->method = at.pc;
	top->address = at.sp;
	top->bci = -1;
	top->flags =
		INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW | at.exact * INCSTACK_OBJECT_EXACT;
	if (at.decode_now)
		top->flags |= OBJECT_DECODE_NOW;
	t->top = top;
	atomic_signal_fence(memory_order_seq_cst);
	s->arena.object++;
	bool barriers = has_barriers(s);
	uint32_t distance = barriers ? s->distance.value : UINT32_MAX;
	if (interrupted && !distance)
		distance = 1; /* the interrupted frame's own slot is left alone */
	struct reach r =
		run(s, at.pc - !at.exact, at.sp, at.fp, s->newest, s->newest_thunk, distance);
	if (__builtin_expect(r.met, 1)) {
		link_known(s, top, r.end, s->newest);
	} else if (r.base && s->mode == INCSTACK_MODE_FULL) {
		link_base(s, top, r);
	} else {
		struct cursor from = at;
		walk(s, top, &from, r, distance, interrupted);
	}
	t->old = s->met;
	add_trace(s, t);
	if (barriers)
		distance_observe(s, top + 1, s->arena.object);
	return 0;
}

/* In a signal handler: what interrupted the trampoline is a return, and a frame
 * without a rule is refused, for the embedder cannot be asked here. */
__attribute__((noinline)) static int take_interrupted(stack *s, uint64_t id, uint64_t weight,
						      const struct incstack_top *top)
{
	struct cursor at = {.pc = top->pc, .sp = top->sp, .fp = top->fp, .exact = true};
	attribute(s, &at);
	uintptr_t address = at.pc - !at.exact;
	bool known = at.pc;
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

static inline int take_at(stack *s, uint64_t id, uint64_t weight, const struct incstack_top *top)
{
	struct cursor at = {.pc = top->pc, .sp = top->sp, .fp = top->fp};
	at.exact = top->flags & INCSTACK_TOP_EXACT;
	at.decode_now = top->flags & INCSTACK_TOP_DECODE_NOW;
	if (s->limbo)
		incstack__limbo_empty(s);
	if (__builtin_expect(rules_wanted(s->runtime), 0))
		incstack__rule_learn_wanted(s->runtime);
	return take(s, id, weight, at, false);
}

int incstack_sample(struct incstack_stack *s, uint64_t id, uint64_t weight,
		    const struct incstack_top *top)
{
	int error = enter(s);
	if (error)
		return error;
	if (!good(s, top))
		error = INCSTACK_EINVAL;
	else if (top->flags & INCSTACK_TOP_INTERRUPTED)
		error = take_interrupted(s, id, weight, top);
	else
		error = take_at(s, id, weight, top);
	leave(s);
	return error;
}
