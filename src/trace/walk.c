/* SPDX-License-Identifier: MIT
 *
 * The general walk over the frames of a stack, from a frame towards the base. It ends in one of
 * four ways:
 * - arrive_known: it meets a known frame.
 * - arrive: it plants a barrier, where the barrier distance is used up.
 * - end: it reaches the base.
 * - cut: the caller of a frame is not found, or there is no memory. The trace is then truncated.
 * Samples, intercepted returns and retrieve all use it, with different bounds.
 *
 * incstack__walk_continue() is the loop. A fast walk (fast_walk.h) makes the objects of ordinary
 * frames. look() then makes one step over the frame at which the fast walk has stopped.
 */
#include "barrier.h"
#include "decode.h"
#include "fast_walk.h"
#include "fault.h"
#include "mapped.h"
#include "signals.h"
#include "validate.h"
#include "walk.h"

static object *pop_until(stack *s, object *known, const object *end)
{
	while (known && known != end)
		known = incstack__known_pop(s, known);
	return known;
}

/* Returns the object of the frame p->at if this frame and all its callers are known: either the
 * return slot of the frame has the thunk of its barrier, or the known objects agree with the stack
 * (validate.c). Otherwise removes from p->known the objects that this walk can no longer meet, and
 * returns null. */
static object *meet(stack *s, struct path *p)
{
	object *k = p->known;
	while (k && k->address < p->at.sp)
		k = incstack__known_pop(s, k);
	p->known = k;
	if (!k || k->address != p->at.sp)
		return NULL;
	if (p->at.pc == barrier_word(k) || FAULT(FAULT_ADDRESS_ALONE))
		return k;
	object *good;
	if (incstack__validate(s, k, &p->at, &good))
		return k;
	p->known = pop_until(s, k, good);
	return NULL;
}

/* A signal has interrupted the trampoline, and the frame `at` runs next. If its barrier is in the
 * chain *known, this function finishes the return in the way of the trampoline: it captures the
 * callers of the frame, and *known becomes the chain of the known callers. Otherwise the barrier
 * would count as vanished, although the trampoline is about to serve it. Returns the object of the
 * frame, or null. */
object *incstack__finish_return(const struct walker *w, object **known, const struct cursor *at)
{
	stack *s = w->stack;
	object *o = *known;
	while (o && (!(o->flags & OBJECT_BARRIER) || o->address < at->sp))
		o = (object *)o->parent;
	if (!o || o->address != at->sp)
		return NULL;
	pop_until(s, *known, o);
	incstack__barrier_served(s, o);
	o->flags |= INCSTACK_OBJECT_FILLED;
	*known = o->flags & OBJECT_GAP ? incstack__gap_fill(w, o, at->fp)
				       : next_barrier(physical_parent(o));
	return o;
}

/* Removes from the known chain the frames that an unannounced exit has popped. Dead slots may still
 * hold thunks, so only a walk from the running frame can tell. It begins at the frame `at`. `slot`
 * has the return address that leads to this frame, or is 0 if the frame was interrupted. A walk to
 * the base without a known frame empties the chain. Returns false if the caller of a frame was not
 * found, and `trust` if the walk ended on another stack without reaching s. */
static bool remove_popped(stack *s, struct cursor at, uintptr_t slot, bool trust)
{
	const struct walker w = {stepper_of(s, ASK_DIRECTLY), s, false, s->distance.value, 0};
	struct path p = {.at = at, .known = s->newest, .here = inside(s, at.sp)};
	enum step step = STEP_FRAME;
	incstack__mapped_clear(s);
	while (step == STEP_FRAME && p.known) {
		packed_rule rule;
		p.here |= inside(s, p.at.sp);
		if (slot && inside(s, slot) && meet(s, &p))
			break;
		if (p.at.signal && incstack__pass_trampoline(&w.steps, &p.at))
			p.here |= incstack__finish_return(&w, &p.known, &p.at) != NULL;
		p.at.pc = incstack__position(&w.steps, slot, p.at.pc);
		step = incstack__step(&w.steps, &p.at, &slot, &rule);
	}
	if (!p.here && step == STEP_END)
		return trust;
	set_newest(s, step == STEP_END ? pop_until(s, p.known, NULL) : p.known);
	return step != STEP_UNKNOWN;
}

/* Does remove_popped() for the thread that runs. `frame` is the frame of a public function. On a
 * signal stack, the walk leads through the handler to the interrupted stack. If the caller runs on
 * another stack, there is no frame to walk from. The known chain is then trusted, unless the caller
 * is the thread that began on s (incstack__stack_is_of_thread). This thread may have left frames of
 * s, and then have switched to the other stack. */
bool incstack__machine_remove_popped(stack *s, const uintptr_t *frame)
{
	if (s->mode != INCSTACK_MODE_PATCH)
		return true;
	const bool trust = s->thread != thread_self();
	if (!inside(s, (uintptr_t)frame) && !incstack__on_signal_stack())
		return trust;
	const struct cursor at = {.pc = frame[1], .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
	return remove_popped(s, at, (uintptr_t)(frame + 1), trust);
}

/* Does remove_popped() for a thread that was interrupted at `top` and holds still. Returns false if
 * the walk does not lead to s, or if there is no top. */
bool incstack__machine_remove_popped_at(stack *s, const struct incstack_top *top)
{
	if (!top)
		return false;
	const struct cursor at = {.pc = top->pc, .sp = top->sp, .fp = top->fp, .exact = true};
	return s->mode != INCSTACK_MODE_PATCH || remove_popped(s, at, 0, false);
}

/* Whether a barrier may be planted at `slot`. Code without a rule must not be patched, nor a slot in its
 * frame, because it may belong to a VM that walks its own stack. The return slot of a frame that a signal interrupted
 * must not be patched, because the frame may be about to copy its return address. */
static bool may_plant(const struct walker *w, struct path *p, uintptr_t slot)
{
	if (w->stack->mode != INCSTACK_MODE_PATCH || p->n < w->distance || p->interrupted ||
	    p->no_thunk || p->guessed)
		return false;
	if (slot != p->at.sp - sizeof(uintptr_t) || slot % sizeof(uintptr_t) ||
	    slot < w->plant_from || is_thunk(stack_word(slot)))
		return false;
	packed_rule rule = p->rule = incstack__rule_of(&w->steps, p->at.pc, false);
	return rule_plain(rule) || (rule_known(rule) && !rule_forbids_barrier(rule) &&
				    incstack__rule_unpack(rule).kind != INCSTACK_RULE_SIGNAL &&
				    incstack__rule_unpack(rule).kind != INCSTACK_RULE_END);
}

static object *make(const struct walker *w, const struct cursor *at, uint32_t flags)
{
	const uint32_t exact = at->exact ? INCSTACK_OBJECT_EXACT : 0;
	return arena_object(
		w->stack->runtime, &w->stack->arena, w->grow,
		(object){NULL, at->pc, at->sp, -1, flags | INCSTACK_OBJECT_RAW | exact});
}

/* Makes a skeleton for the frame p->at and guards it by a barrier. Returns null if there is no
 * memory or no thunk. */
static object *plant(const struct walker *w, struct path *p)
{
	stack *s = w->stack;
	uint32_t late = rule_decodes_now(p->rule) ? OBJECT_DECODE_NOW : 0;
	object *o = make(w, &p->at, OBJECT_GAP | late);
	if (!o)
		return NULL;
	if (!incstack__barrier_plant(s, o, p->at.fp)) {
		s->arena.object--;
		p->no_thunk = true;
		return NULL;
	}
	o->parent = p->known;
	return o;
}

static object *arrive(stack *s, struct path *p, object *k)
{
	p->child->parent = k;
	s->walked += p->n + 1;
	return incstack__validate_known(s, p->head, k);
}

static object *arrive_known(stack *s, struct path *p, object *k)
{
	s->found.known = k;
	return arrive(s, p, k);
}

static object *cut(stack *s, struct path *p, bool no_memory)
{
	if (no_memory) /* the frame pointer is not to blame */
		p->child->flags &= ~(uint32_t)INCSTACK_OBJECT_POINTER;
	incstack__cut_walk(s, p->child, no_memory);
	s->walked += p->n + 1;
	return p->known;
}

/* Ends a walk at the base. If the walk has not reached s, the known chain stays. Mode validate
 * remembers the callers for the next comparison; other modes keep no known chain, as no barrier
 * guards it. */
static object *end(stack *s, struct path *p)
{
	p->child->flags |= INCSTACK_OBJECT_BASE;
	s->walked += p->n + 1;
	if (!p->here)
		return p->known;
	pop_until(s, p->known, NULL);
	return incstack__validate_known(s, p->head, NULL);
}

/* Applies the rule of p->child. Decodes the object now if the rule demands it. Otherwise keeps the
 * rule for mode validate. Returns false if there is no memory. */
static bool note_rule(const struct walker *w, struct path *p, packed_rule rule,
		      const struct cursor *at)
{
	if (rule_decodes_now(rule))
		p->child->flags |= OBJECT_DECODE_NOW;
	if (rule_forbids_barrier(rule))
		p->child->flags |= OBJECT_NO_BARRIER;
	if (rule_by_pointer(rule))
		p->child->flags |= INCSTACK_OBJECT_POINTER;
	if (rule_decodes_now(rule) && w->steps.ask != ASK_NEVER &&
	    w->stack->runtime->embedder.code.decode) {
		struct incstack_frame f = {at->pc, at->sp, at->fp,
					   at->exact ? INCSTACK_FRAME_EXACT : 0, 0};
		object *last = incstack__decode(w->stack, p->child, &f, w->steps.ask, w->grow);
		p->child = last ? last : p->child;
		return last;
	}
	validate_keep_rule(w->stack, p->child, rule);
	return true;
}

/* If the signal whose frame was just left has interrupted the trampoline, moves to the frame that
 * runs next, and finishes the return. Returns that frame's object if the return was not finished
 * before. */
static object *find_interrupted_return(const struct walker *w, struct path *p)
{
	object *o;
	if (!incstack__pass_trampoline(&w->steps, &p->at) || !p->at.pc)
		return NULL;
	const struct walker filler = {w->steps, w->stack, w->grow, w->stack->distance.value,
				      w->plant_from};
	o = incstack__finish_return(&filler, &p->known, &p->at);
	if (o)
		p->child->flags |= INCSTACK_OBJECT_SIGNAL;
	return o;
}

/* Handles the frame p->at, which is not ordinary or at which the walk may end. Sets *ended if
 * the walk ends there, and then returns the head of the known chain. */
static object *look(const struct walker *w, struct path *p, bool *ended)
{
	stack *s = w->stack;
	uintptr_t slot;
	packed_rule rule;
	struct cursor from = p->at;
	enum step step = incstack__step(&w->steps, &p->at, &slot, &rule);
	incstack__mapped_use(s);
	*ended = true;
	if (!note_rule(w, p, rule, &from))
		return cut(s, p, true);
	if (step == STEP_END)
		return end(s, p);
	p->guessed = rule_by_pointer(rule);
	p->guesses += p->guessed;
	if (step == STEP_UNKNOWN || p->guesses > INCSTACK__POINTER_STEPS)
		return cut(s, p, false);
	bool tracked = slot && inside(s, slot);
	p->here |= tracked;
	object *k = p->at.signal ? find_interrupted_return(w, p) : NULL;
	if (k) {
		arrive_known(s, p, k);
		return p->known;
	}
	k = tracked ? meet(s, p) : NULL;
	if (k)
		return arrive_known(s, p, k);
	p->at.pc = incstack__position(&w->steps, slot, p->at.pc);
	if (!p->at.pc)
		return cut(s, p, false);
	if (tracked && may_plant(w, p, slot) && (k = plant(w, p)) != NULL) {
		s->found.known = p->known;
		return arrive(s, p, k);
	}
	k = make(w, &p->at, INCSTACK_OBJECT_FILLED);
	if (!k)
		return cut(s, p, true);
	if (p->at.signal)
		p->child->flags |= INCSTACK_OBJECT_SIGNAL;
	p->child->parent = k;
	p->child = k;
	p->n++;
	p->interrupted = p->at.signal;
	p->head = !tracked ? NULL : p->head ? p->head : k;
	*ended = false;
	return NULL;
}

static uint32_t callers_left(const struct walker *w, const struct path *p)
{
	return w->distance > p->n ? w->distance - p->n : 0;
}

/* Whether a barrier may guard the frame `ahead`, at which the fast walk stopped because its budget
 * of callers was spent. */
static bool may_plant_ahead(const stack *s, const struct fast_walk *r, uintptr_t plant_from)
{
	return s->mode == INCSTACK_MODE_PATCH && r->ahead.sp - sizeof(uintptr_t) >= plant_from &&
	       arena_fits(&s->arena, (size_t)(r->end - s->arena.object) + 1);
}

/* Plants a barrier at the frame `ahead`, and links the objects of the fast walk between `child` and
 * `known`. Returns null if there is no thunk. The object of the frame `ahead` then is the last
 * object of the fast walk. */
static object *plant_ahead(stack *s, object *child, object *known, struct fast_walk *r)
{
	object *o = r->end++;
	*o = skeleton(r->ahead.pc, r->ahead.sp, known);
	r->fp = r->ahead.fp;
	commit(s, child, r->end, known);
	if (__builtin_expect(incstack__barrier_plant(s, o, r->fp), 1))
		return o;
	o->parent = NULL;
	o->flags = OBJECT_ORDINARY;
	return NULL;
}

/* Moves the path to the end of a fast walk. Its objects begin at `first` and are linked already. */
static void advance(struct path *p, object *first, struct fast_walk r)
{
	p->child = r.end - 1;
	p->head = p->head ? p->head : first;
	p->n += (uint32_t)(r.end - first);
	p->interrupted = false;
	p->at = (struct cursor){.pc = p->child->function, .sp = p->child->address, .fp = r.fp};
}

/* Links the objects that a fast walk has made, and moves the path to their end. */
static void follow(stack *s, struct path *p, struct fast_walk r)
{
	object *first = s->arena.object;
	if (r.end == first)
		return;
	commit(s, p->child, r.end, NULL);
	advance(p, first, r);
}

/* Ends the walk with a barrier at the frame ahead. Returns null if that is impossible and the
 * walk goes on. */
static object *stop_ahead(const struct walker *w, struct path *p, struct fast_walk *r)
{
	stack *s = w->stack;
	object *first = s->arena.object;
	if (p->no_thunk || (p->interrupted && r->end == first) ||
	    !may_plant_ahead(s, r, w->plant_from))
		return NULL;
	object *o = plant_ahead(s, p->child, p->known, r);
	advance(p, first, *r);
	p->no_thunk = !o;
	if (o) {
		s->found.known = p->known;
		s->walked += p->n;
	}
	return o;
}

/* Whether the general walk agrees with a fast walk. One step from the frame of each object must
 * lead to the frame of the next object. The walk begins at the frame `at`, whose pc is a key of a
 * rule. */
bool incstack__fast_walk_agrees(stack *s, struct cursor at, const object *first, const object *end,
				const uintptr_t *fp)
{
	const struct stepper w = stepper_of(s, ASK_NEVER);
	for (const object *o = first; o < end; o++) {
		uintptr_t slot;
		packed_rule rule;
		enum step step = incstack__step(&w, &at, &slot, &rule);
		if (!rule) /* another thread has forgotten it since */
			return true;
		if (step != STEP_FRAME || !rule_plain(rule) || at.pc != o->function ||
		    at.sp != o->address)
			return false;
	}
	return !fp || at.fp == *fp;
}

/* Makes a fast walk from the frame p->at. */
static inline struct fast_walk fast_walk_from(const struct walker *w, const struct path *p)
{
	stack *s = w->stack;
	object *first = s->arena.object;
	uintptr_t thunk = barrier_word(p->known);
	return fast_walk(s, p->at.pc + p->at.exact, p->at.sp, p->at.fp, p->known, &thunk, first,
			 fast_walk_end(s, first, callers_left(w, p)), s->validation.hidden);
}

/* Continues a walk whose first fast walk, r, was already made. */
object *incstack__walk_continue(const struct walker *w, struct path *p, struct fast_walk r)
{
	stack *s = w->stack;
	s->found.known = NULL;
	incstack__mapped_clear(s);
	for (;;) {
		bool ended;
		object *result = r.stop == STOP_SPENT ? stop_ahead(w, p, &r) : NULL;
		if (result)
			return result;
		follow(s, p, r);
		if (r.stop == STOP_KNOWN)
			return arrive_known(s, p, p->known);
		result = look(w, p, &ended);
		if (ended)
			return result;
		r = fast_walk_from(w, p);
	}
}

object *incstack__machine_walk(const struct walker *w, struct path *p)
{
	incstack__mapped_clear(w->stack);
	return incstack__walk_continue(w, p, fast_walk_from(w, p));
}

/* Captures the callers of o, up to the next barrier. Returns the head of the known chain. */
object *incstack__gap_fill(const struct walker *w, object *o, uintptr_t fp)
{
	struct path p = {.child = o, .known = (object *)o->parent, .here = true};
	p.at = (struct cursor){.pc = o->function, .sp = o->address, .fp = fp};
	/* The parent is cleared first. Without the flag it would be taken for the caller (I8). */
	o->parent = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	o->flags &= ~(uint32_t)OBJECT_GAP;
	return walk_callers(w, &p);
}
