/* SPDX-License-Identifier: MIT
 *
 * One walk over the frames of a stack: from a frame towards the base until it
 * meets a frame that is already known, until the distance is used up and a
 * barrier can be planted, or until the stack ends. Samples, intercepted returns
 * and retrieve are this one walk with different bounds.
 */
#include "internal.h"

#define FP_RULE (INCSTACK_RULE_FP | 1ull << 8 | 2ull << 16 | 16ull << 32)

struct question {
	runtime *rt;
	uintptr_t address;
	packed_rule rule;
};

static void learn(void *argument)
{
	struct question *q = argument;
	q->rule = incstack__rule_learn(q->rt, q->address);
}

static packed_rule rule_of(const struct walker *w, uintptr_t pc, bool exact)
{
	runtime *rt = w->stack->runtime;
	uintptr_t address = pc - !exact;
	if (!rt->embedder.find_rule)
		return FP_RULE;
	packed_rule rule = incstack__rule_find(rt, address);
	if (__builtin_expect(rule != 0, 1) || w->ask == ASK_NEVER)
		return rule;
	struct question q = {rt, address, 0};
	if (w->ask == ASK_SAVED)
		incstack__call_saved(learn, &q, rt->xsave_bytes);
	else
		learn(&q);
	return q.rule;
}

static bool inside(const stack *s, uintptr_t address)
{
	return address >= s->low && address < s->high;
}

/* A word of the stack. The range is checked where it is known; beyond it (a
 * signal stack) the rules are trusted. Other code's redzones are read here. */
__attribute__((no_sanitize("address", "thread"))) static uintptr_t load(uintptr_t address)
{
	return *(const volatile uintptr_t *)address;
}

static bool readable(const stack *s, const struct cursor *at, uintptr_t address)
{
	if (address % sizeof(uintptr_t))
		return false;
	return inside(s, at->sp) ? address >= at->sp && inside(s, address) : address >= at->sp;
}

static bool cfa_of(const struct walker *w, const struct cursor *at, packed_rule rule,
		   uintptr_t *cfa)
{
	uintptr_t offset = (uintptr_t)(intptr_t)(int32_t)(rule >> 32);
	switch (rule & 15) {
	case INCSTACK_RULE_SP:
		*cfa = at->sp + offset;
		return true;
	case INCSTACK_RULE_FP:
		*cfa = at->fp + offset;
		return true;
	case INCSTACK_RULE_FP_DEREF:
		if (!readable(w->stack, at, at->fp + offset))
			return false;
		*cfa = load(at->fp + offset);
		return true;
	default:
		return false;
	}
}

/* Moves *at to its caller. *slot is the return slot, 0 behind a signal. */
enum step incstack__step(const struct walker *w, struct cursor *at, uintptr_t *slot,
			 packed_rule *rule)
{
	packed_rule r = *rule = rule_of(w, at->pc, at->exact);
	uint32_t kind = r & 15;
	at->signal = kind == INCSTACK_RULE_SIGNAL;
	if (kind == INCSTACK_RULE_END)
		return STEP_END;
	if (kind == INCSTACK_RULE_SIGNAL) {
		*slot = 0;
		incstack__signal_registers(at);
		return STEP_FRAME;
	}
	uintptr_t cfa, fp_offset = (r >> 16 & 0xffff) * 8, ra = (r >> 8 & 0xff) * 8, fp = at->fp;
	if (!cfa_of(w, at, r, &cfa) || !readable(w->stack, at, cfa - ra))
		return r == FP_RULE ? STEP_END : STEP_UNKNOWN;
	bool realigned = kind == INCSTACK_RULE_FP_DEREF;
	if (fp_offset || realigned) {
		uintptr_t saved = (realigned ? fp : cfa) - fp_offset;
		if (!readable(w->stack, at, saved))
			return STEP_UNKNOWN;
		at->fp = load(saved);
	}
	*slot = cfa - ra;
	at->pc = load(*slot);
	at->sp = cfa;
	at->exact = false;
	return at->pc ? STEP_FRAME : STEP_END;
}

/* The rule of a frame in the 32 bits of its object, or 0 where it does not fit. */
static int32_t small_rule(packed_rule r)
{
	int32_t words = (int32_t)(r >> 32) / 8;
	uint32_t kind = r & 15, fp_words = r >> 16 & 0xffff;
	bool fits = (kind == INCSTACK_RULE_SP || kind == INCSTACK_RULE_FP) && !(r & 0xf0) &&
		    (r >> 8 & 0xff) == 1 && words > 0 && words < 1 << 17 && fp_words < 1 << 11;
	return fits ? (int32_t)(kind | fp_words << 3 | (uint32_t)words << 14) : 0;
}

/* Whether the chain from k, whose own return address was just seen, still
 * describes the stack down to a live barrier or the base (I3): each frame's own
 * rule leads to its parent's slot, and that slot holds what it held. *good is the
 * youngest object that may still hold below a mismatch; *length counts frames. */
static bool still_true(const stack *s, object *k, uintptr_t fp, object **good, uint32_t *length)
{
	for (*length = 0;; ++*length) {
		if (k->flags & OBJECT_BARRIER || k->flags & INCSTACK_OBJECT_BASE)
			return true;
		object *p = physical_parent(k);
		uint32_t rule = (uint32_t)k->bci, fp_words = rule >> 3 & 0x7ff;
		*good = p;
		if (!p || !rule || !(k->flags & INCSTACK_OBJECT_RAW))
			return false;
		uintptr_t cfa =
			((rule & 7) == INCSTACK_RULE_SP ? k->address : fp) + (rule >> 14) * 8;
		if (p->address != cfa || !inside(s, cfa - 8))
			return false;
		uintptr_t word = load(cfa - 8);
		if (p->flags & OBJECT_BARRIER)
			return word == thunk_address(p->flags >> OBJECT_SHIFT);
		*good = physical_parent(p);
		if (word != p->method)
			return false;
		if (fp_words)
			fp = load(cfa - fp_words * 8);
		k = p;
	}
}

static object *pop_until(stack *s, object *known, const object *end)
{
	while (known && known != end)
		known = incstack__known_pop(s, known);
	return known;
}

/* What had to be compared has grown too long: the next sample shall stop earlier.
 * The chain below is known, so the barrier has no gap. */
static void plant_nearer(const struct walker *w, object *k, uint32_t length)
{
	uint32_t n = w->distance;
	if (w->stack->mode != INCSTACK_MODE_PATCH || length <= 2 * n + 4)
		return;
	while (k && n--)
		k = physical_parent(k);
	if (k && !(k->flags & (OBJECT_BARRIER | INCSTACK_OBJECT_EXACT)) &&
	    (uintptr_t)object_slot(k) >= w->plant_from &&
	    !is_thunk(load((uintptr_t)object_slot(k))))
		incstack__barrier_plant(w->stack, k, 0);
}

/* The object of the frame *at if it and all below are known; otherwise *known is
 * reduced to what may still be met further down. */
static object *meet(const struct walker *w, object **known, const struct cursor *at)
{
	stack *s = w->stack;
	object *k = *known;
	uint32_t length;
	while (k && k->address < at->sp)
		k = incstack__known_pop(s, k);
	*known = k;
	if (!k || k->address != at->sp)
		return NULL;
	if (k->flags & OBJECT_BARRIER && at->pc == thunk_address(k->flags >> OBJECT_SHIFT))
		return k;
	object *good = physical_parent(k);
	if (!(k->flags & OBJECT_BARRIER) && k->flags & INCSTACK_OBJECT_RAW && k->method == at->pc &&
	    still_true(s, k, at->fp, &good, &length)) {
		plant_nearer(w, k, length);
		return k;
	}
	*known = pop_until(s, k, good);
	return NULL;
}

static bool may_plant(const struct walker *w, const struct cursor *at, uintptr_t slot)
{
	if (slot != at->sp - sizeof(uintptr_t) || slot < w->plant_from || is_thunk(load(slot)))
		return false;
	uint32_t kind = rule_of(w, at->pc, false) & 15;
	return kind != INCSTACK_RULE_SIGNAL && kind != INCSTACK_RULE_END;
}

/* Virtual frames of a frame whose position must be read now. */
struct decoding {
	runtime *rt;
	struct incstack_frame frame;
	struct incstack_virtual_frame out[INCSTACK_VIRTUAL_MAX];
	int count;
};

static void decode(void *argument)
{
	struct decoding *d = argument;
	d->count = d->rt->embedder.decode(d->rt->context, &d->frame, d->out, INCSTACK_VIRTUAL_MAX);
}

/* Decodes o in place; its inlined callers become objects between it and what
 * will be its parent. Returns the outermost. */
static object *decode_now(const struct walker *w, object *o, const struct cursor *at)
{
	runtime *rt = w->stack->runtime;
	if (!rt->embedder.decode || w->ask == ASK_NEVER)
		return o;
	struct decoding d = {.rt = rt, .frame = {at->pc, at->sp, at->fp, at->exact, 0}};
	if (w->ask == ASK_SAVED)
		incstack__call_saved(decode, &d, rt->xsave_bytes);
	else
		decode(&d);
	for (int i = 0; i < d.count; i++) {
		object *v = i ? arena_object(w->stack, w->grow) : o;
		if (!v)
			break;
		uint32_t virtual = i ? INCSTACK_OBJECT_VIRTUAL | INCSTACK_OBJECT_FILLED : 0;
		*v = (object){NULL, d.out[i].method, o->address, d.out[i].bci,
			      (i ? virtual : o->flags & ~(uint32_t)INCSTACK_OBJECT_RAW)};
		if (i)
			o->parent = v;
		o = v;
	}
	return o;
}

static object *make(const struct walker *w, const struct cursor *at, uint32_t flags)
{
	object *o = arena_object(w->stack, w->grow);
	if (!o)
		return NULL;
	o->parent = NULL;
	o->method = at->pc;
	o->address = at->sp;
	o->bci = 0;
	o->flags = flags | INCSTACK_OBJECT_RAW | (at->exact ? INCSTACK_OBJECT_EXACT : 0);
	return o;
}

static void cut(stack *s, object *o)
{
	o->parent = NULL;
	o->flags |= INCSTACK_OBJECT_TRUNCATED;
	s->stats.truncated++;
}

/* Makes the objects of the callers of child, the object of the frame at, and
 * links them to what is already known. Returns the head of the known chain that
 * results: the youngest caller that a later walk may meet. */
object *incstack__walk(const struct walker *w, struct cursor at, object *child, object *known)
{
	stack *s = w->stack;
	object *head = NULL;
	uint32_t n = 0;
	s->met = NULL;
	bool patch = s->mode == INCSTACK_MODE_PATCH, interrupted = false;
	for (;; n++) {
		uintptr_t slot;
		packed_rule rule;
		struct cursor from = at;
		enum step step = incstack__step(w, &at, &slot, &rule);
		s->stats.walked++;
		if (rule & (uint64_t)INCSTACK_RULE_DECODE_NOW << 4)
			child = decode_now(w, child, &from);
		else if (child->flags & INCSTACK_OBJECT_RAW)
			child->bci = small_rule(rule);
		if (step == STEP_END) {
			child->flags |= INCSTACK_OBJECT_BASE;
			return pop_until(s, known, NULL), head;
		}
		if (step == STEP_UNKNOWN) {
			cut(s, child);
			return known;
		}
		bool tracked = slot && inside(s, slot);
		object *k = tracked ? meet(w, &known, &at) : NULL;
		if (k) {
			child->parent = s->met = k;
			s->stats.shared++;
			incstack__distance_observe(s, n);
			return head ? head : k;
		}
		if (is_thunk(at.pc))
			at.pc = incstack_slot_read(&at.pc);
		if (tracked && n >= w->distance && patch && !interrupted &&
		    may_plant(w, &at, slot)) {
			object *o = make(w, &at, OBJECT_GAP);
			if (o && incstack__barrier_plant(s, o, at.fp)) {
				o->parent = s->met = known;
				child->parent = o;
				incstack__distance_observe(s, n);
				return head ? head : o;
			}
			if (o)
				s->arena.object--;
		}
		object *o = make(w, &at, INCSTACK_OBJECT_FILLED);
		if (!o) {
			cut(s, child);
			return known;
		}
		if (at.signal)
			child->flags |= INCSTACK_OBJECT_SIGNAL;
		child->parent = o;
		child = o;
		interrupted = at.signal;
		head = !tracked ? NULL : head ? head : o;
	}
}
