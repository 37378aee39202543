/* SPDX-License-Identifier: MIT
 *
 * One walk over the frames of a stack: from a frame towards the base until it
 * meets a frame that is already known, until the distance is used up and a
 * barrier can be planted, or until the stack ends. Samples, intercepted returns
 * and retrieve are this one walk with different bounds.
 */
#include "internal.h"

/* How far a walk has come. */
struct path {
	struct cursor at;
	object *child;    /* the object of the frame at */
	object *known;    /* the youngest object that may still be met */
	object *head;     /* the youngest caller that was made: where a memo begins */
	uint32_t n;       /* callers that were made */
	bool interrupted; /* a signal interrupted the frame at */
	bool here;        /* not before, on a signal's stack, nor ever on a strange one */
	bool no_thunk;    /* none was left: the walk goes on without a barrier */
};

/* Where the objects of a run end: so many callers, or what memory there is. */
static const object *end_of_run(const stack *s, uint32_t callers)
{
	const object *end = s->arena.object + callers;
	return arena_fits(s, callers) ? end : s->arena.object + arena_room(s);
}

/* Where a run came to: the objects it made end there. */
struct reach {
	object *end;
	uintptr_t fp;
	bool met; /* the next frame is known by its live barrier */
};

/* Goes on from the frame {pc, sp, fp} while frames are as nearly all are: a plain
 * rule, inside the stack, not known. What stops it wants a closer look. Branches on
 * the rule, not arithmetic, lead to the next frame: they are foreseen, and then its
 * loads do not wait for the rule. */
__attribute__((always_inline)) static inline struct reach
run(const stack *s, uintptr_t pc, uintptr_t sp, uintptr_t fp, const object *known, uint32_t callers)
{
	const struct rule_table *t = rule_table_of(s->runtime);
	const uintptr_t limit = known ? known->address : s->high;
	const object *const end = end_of_run(s, callers);
	struct reach r = {s->arena.object, fp, false};
	packed_rule rule = t && inside(s, sp) ? rule_in(t, pc) : 0;
	while (rule_plain(rule)) {
		uintptr_t cfa;
		if (__builtin_expect(rule == RULE_FRAME_POINTER, 1))
			cfa = r.fp + 16;
		else
			cfa = (rule_from_fp(rule) ? r.fp : sp) + rule_cfa(rule);
		if (cfa <= sp || cfa > limit || cfa % sizeof(uintptr_t))
			break;
		uintptr_t word = stack_word(cfa - sizeof(uintptr_t));
		if (cfa == limit) {
			r.met = known && is_barrier_word(known, word);
			break;
		}
		packed_rule next = rule_in(t, word - 1);
		if (!next || r.end == end)
			break;
		if (__builtin_expect(rule == RULE_FRAME_POINTER, 1))
			r.fp = stack_word(cfa - 16);
		else if (rule_fp(rule))
			r.fp = stack_word(cfa - rule_fp(rule));
		sp = cfa;
		rule = next;
		object *o = r.end++;
		o->parent = r.end;
		o->method = word;
		o->address = cfa;
		o->bci = (int32_t)next;
		o->flags = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_RAW;
	}
	return r;
}

/* Whether the memo from k, whose own return address was just seen, still describes
 * the stack down to the base (I3): each frame's own rule leads to its parent's
 * slot, and that slot holds what it held. *good is the youngest object that may
 * still hold below a mismatch. */
static bool still_true(const stack *s, const object *k, uintptr_t fp, object **good)
{
	while (!(k->flags & INCSTACK_OBJECT_BASE)) {
		object *p = physical_parent(k);
		packed_rule rule = (uint32_t)k->bci;
		*good = p;
		if (!p || !rule_plain(rule) || !(k->flags & INCSTACK_OBJECT_RAW))
			return false;
		uintptr_t cfa = (rule_from_fp(rule) ? fp : k->address) + rule_cfa(rule);
		if (p->address != cfa || !inside(s, cfa - sizeof(uintptr_t)))
			return false;
		*good = physical_parent(p);
		if (stack_word(cfa - sizeof(uintptr_t)) != p->method)
			return false;
		if (rule_fp(rule))
			fp = stack_word(cfa - rule_fp(rule));
		k = p;
	}
	return true;
}

static object *pop_until(stack *s, object *known, const object *end)
{
	while (known && known != end)
		known = incstack__known_pop(s, known);
	return known;
}

/* The object of the frame at if it and all below are known; otherwise p->known is
 * reduced to what may still be met further down. */
static object *meet(stack *s, struct path *p)
{
	object *k = p->known;
	while (k && k->address < p->at.sp)
		k = incstack__known_pop(s, k);
	p->known = k;
	if (!k || k->address != p->at.sp)
		return NULL;
	if (is_barrier_word(k, p->at.pc))
		return k;
	object *good = physical_parent(k);
	if (s->mode == INCSTACK_MODE_VALIDATE && k->flags & INCSTACK_OBJECT_RAW &&
	    k->method == p->at.pc && still_true(s, k, p->at.fp, &good))
		return k;
	p->known = pop_until(s, k, good);
	return NULL;
}

static bool may_plant(const struct walker *w, const struct path *p, uintptr_t slot)
{
	if (w->stack->mode != INCSTACK_MODE_PATCH || p->n < w->distance || p->interrupted ||
	    p->no_thunk)
		return false;
	if (slot != p->at.sp - sizeof(uintptr_t) || slot < w->plant_from ||
	    is_thunk(stack_word(slot)))
		return false;
	packed_rule rule = incstack__rule_of(w, p->at.pc, false);
	return rule_plain(rule) || (incstack__rule_unpack(rule).kind != INCSTACK_RULE_SIGNAL &&
				    incstack__rule_unpack(rule).kind != INCSTACK_RULE_END);
}

static object *make(const struct walker *w, const struct cursor *at, uint32_t flags)
{
	const uint32_t exact = at->exact ? INCSTACK_OBJECT_EXACT : 0;
	return arena_object(w->stack, w->grow,
			    (object){NULL, at->pc, at->sp, 0, flags | INCSTACK_OBJECT_RAW | exact});
}

/* A skeleton at p, behind a barrier; null where none can be had. */
static object *plant(const struct walker *w, struct path *p)
{
	stack *s = w->stack;
	object *o = make(w, &p->at, OBJECT_GAP);
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
	s->stats.walked += p->n + 1;
	return s->mode == INCSTACK_MODE_VALIDATE && p->head ? p->head : k;
}

static object *arrive_known(stack *s, struct path *p, object *k)
{
	s->met = k;
	s->stats.shared++;
	return arrive(s, p, k);
}

/* Nothing more can be known of the callers of p->child. */
static object *cut(stack *s, struct path *p)
{
	p->child->flags |= INCSTACK_OBJECT_TRUNCATED;
	s->stats.truncated++;
	return p->known;
}

/* What validate compares with next time; other modes know nothing then. */
static object *end(stack *s, struct path *p)
{
	p->child->flags |= INCSTACK_OBJECT_BASE;
	if (!p->here)
		return p->known;
	pop_until(s, p->known, NULL);
	return s->mode == INCSTACK_MODE_VALIDATE ? p->head : NULL;
}

/* Takes note of the rule of p->child: decodes it, or keeps it for a comparison. */
static void note_rule(const struct walker *w, struct path *p, packed_rule rule,
		      const struct cursor *at)
{
	if (rule_decodes_now(rule) && w->ask != ASK_NEVER && w->stack->runtime->embedder.decode) {
		struct incstack_frame f = {at->pc, at->sp, at->fp,
					   at->exact ? INCSTACK_FRAME_EXACT : 0, 0};
		p->child = incstack__decode(w->stack, p->child, &f, w->ask, w->grow);
	} else if (p->child->flags & INCSTACK_OBJECT_RAW) {
		p->child->bci = rule_plain(rule) ? (int32_t)rule : 0;
	}
}

/* The frame at has something unusual, or is where the walk may end: looks closely.
 * Null: there is more to walk. */
__attribute__((noinline)) static object *look(const struct walker *w, struct path *p, bool *ended)
{
	stack *s = w->stack;
	uintptr_t slot;
	packed_rule rule;
	struct cursor from = p->at;
	enum step step = incstack__step(w, &p->at, &slot, &rule);
	note_rule(w, p, rule, &from);
	*ended = true;
	if (step == STEP_END)
		return end(s, p);
	if (step == STEP_UNKNOWN)
		return cut(s, p);
	bool tracked = slot && inside(s, slot);
	p->here |= tracked;
	object *k = tracked ? meet(s, p) : NULL;
	if (k)
		return arrive_known(s, p, k);
	if (is_thunk(p->at.pc))
		p->at.pc = incstack_slot_read(&p->at.pc);
	if (tracked && may_plant(w, p, slot) && (k = plant(w, p)) != NULL) {
		s->met = p->known;
		return arrive(s, p, k);
	}
	k = make(w, &p->at, INCSTACK_OBJECT_FILLED);
	if (!k)
		return cut(s, p);
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

/* The objects of a run, up to end, become callers of child: in this order, since a
 * jump out of a handler may come between (I8). */
__attribute__((always_inline)) static inline void commit(stack *s, object *child, object *run_end,
							 object *parent)
{
	object *first = s->arena.object;
	if (run_end == first) {
		child->parent = parent;
		return;
	}
	run_end[-1].parent = parent;
	atomic_signal_fence(memory_order_seq_cst);
	s->arena.object = run_end;
	atomic_signal_fence(memory_order_seq_cst);
	child->parent = first;
}

/* Takes over what a run has made. */
static void follow(stack *s, struct path *p, struct reach r)
{
	object *first = s->arena.object;
	if (r.end == first)
		return;
	commit(s, p->child, r.end, NULL);
	p->child = r.end - 1;
	p->head = p->head ? p->head : first;
	p->n += (uint32_t)(r.end - first);
	p->interrupted = false;
	p->at = (struct cursor){.pc = p->child->method, .sp = p->child->address, .fp = r.fp};
}

__attribute__((noinline)) static object *walk_on(const struct walker *w, struct path *p,
						 struct reach r)
{
	stack *s = w->stack;
	for (;;) {
		bool ended;
		follow(s, p, r);
		if (r.met)
			return arrive_known(s, p, p->known);
		object *result = look(w, p, &ended);
		if (ended)
			return result;
		r = run(s, p->at.pc - !p->at.exact, p->at.sp, p->at.fp, p->known,
			w->distance > p->n ? w->distance - p->n : 0);
	}
}

/* Makes the objects of the callers of child, the object of the frame at, and
 * links them to what is already known. Returns the head of the known chain that
 * results: the youngest object that a later walk may meet. */
object *incstack__walk(const struct walker *w, const struct cursor *at, object *child,
		       object *known)
{
	stack *s = w->stack;
	struct reach r = run(s, at->pc - !at->exact, at->sp, at->fp, known, w->distance);
	if (__builtin_expect(!r.met, 0)) {
		struct path p = {
			.at = *at, .child = child, .known = known, .here = inside(s, at->sp)};
		s->met = NULL;
		return walk_on(w, &p, r);
	}
	s->stats.walked += (uint64_t)(r.end - s->arena.object) + 1;
	s->met = known;
	commit(s, child, r.end, known);
	s->stats.shared++;
	return known;
}
