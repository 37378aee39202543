/* SPDX-License-Identifier: MIT
 *
 * Mode validate: a walk compares what is remembered with the stack, from the frame where it meets a
 * known object down to the base. Each raw object keeps the rule of its frame for that. The other
 * modes know the callers of a barrier without a comparison, and keep no known chain where there is
 * no barrier.
 */
#include "validate.h"

static uintptr_t cfa_by(packed_rule rule, const object *k, uintptr_t fp)
{
	return (rule_from_fp(rule) ? fp : k->address) + rule_cfa(rule);
}

/* Whether the frame of k is still the outermost: either its rule says so, or its return slot
 * still holds 0. */
static bool still_base(const stack *s, const object *k, uintptr_t fp)
{
	packed_rule rule = (uint32_t)k->position;
	if (!(k->flags & INCSTACK_OBJECT_RAW) || !rule_plain(rule))
		return k->flags & INCSTACK_OBJECT_RAW && rule == RULE_END;
	uintptr_t cfa = cfa_by(rule, k, fp);
	if (!frame_ordinary(k->address, cfa, cfa - rule_fp(rule), s->high + 1))
		return rule == RULE_FRAME_POINTER;
	return !stack_word(cfa - sizeof(uintptr_t));
}

/* Whether rules were forgotten since this stack was last checked. If so, the rules kept in
 * its objects may belong to code that was unloaded. */
static bool rules_are_old(stack *s)
{
	/* acquire: pairs with the addition in incstack__rules_invalidate. */
	uint64_t now = atomic_load_explicit(&s->runtime->rules_invalidated, memory_order_acquire);
	bool old = s->validation.rules_invalidated != now;
	s->validation.rules_invalidated = now;
	return old;
}

/* What a comparison of a frame with what is remembered of its caller tells. */
enum verdict { SAME, OTHER_FRAME, OTHER_POSITION };

/* Whether the rule of k, whose frame has the frame pointer *fp, leads to the slot of its parent p,
 * and whether the slot holds what it held. If so, *fp becomes the frame pointer of p. */
static inline enum verdict compare(const object *k, const object *p, uintptr_t *fp, uintptr_t limit)
{
	const packed_rule rule = (uint32_t)k->position;
	if (!p || !rule_plain(rule) || !(k->flags & INCSTACK_OBJECT_RAW))
		return OTHER_FRAME;
	const uintptr_t cfa = cfa_by(rule, k, *fp);
	if (p->address != cfa || !frame_ordinary(k->address, cfa, cfa - rule_fp(rule), limit))
		return OTHER_FRAME;
	if (stack_word(cfa - sizeof(uintptr_t)) != p->function)
		return OTHER_POSITION;
	if (rule_fp(rule))
		*fp = stack_word(cfa - rule_fp(rule));
	return SAME;
}

/* Whether the remembered chain from k to the base still describes the stack (I11). The caller has
 * just compared the return address of k. At a mismatch, *good is the youngest object beyond it that
 * may still be right. */
static bool still_true(const stack *s, const object *k, uintptr_t fp, object **good)
{
	const uintptr_t limit = s->high + 1;
	while (!(k->flags & INCSTACK_OBJECT_BASE)) {
		object *p = physical_parent(k);
		const enum verdict verdict = compare(k, p, &fp, limit);
		if (verdict != SAME) {
			*good = verdict == OTHER_POSITION ? physical_parent(p) : p;
			return false;
		}
		k = p;
	}
	*good = NULL;
	return still_base(s, k, fp);
}

/* Whether k, which has the address of the frame `at`, and all its callers still describe the stack.
 * Sets *good to the youngest object that a later part of the walk may meet. */
bool incstack__validate(stack *s, const object *k, const struct cursor *at, object **good)
{
	*good = physical_parent(k);
	if (s->mode != INCSTACK_MODE_VALIDATE)
		return false;
	if (rules_are_old(s)) {
		*good = NULL;
		return false;
	}
	return k->flags & INCSTACK_OBJECT_RAW && k->function == at->pc &&
	       still_true(s, k, at->fp, good);
}

/* The head of the known chain after a walk: the first caller that was made, for the next
 * comparison, or what the walk has met. */
object *incstack__validate_known(const stack *s, object *first, object *otherwise)
{
	return s->mode == INCSTACK_MODE_VALIDATE && first ? first : otherwise;
}

/* Called when the mode of the stack was set. */
void incstack__validate_open(stack *s)
{
	const bool validates = s->mode == INCSTACK_MODE_VALIDATE;
	s->validation.hidden = validates ? 0 : -1;
	s->slow_reasons = s->kind->slow_reasons | (validates ? SLOW_WALK : 0u);
}

/* Removes the rules that raw objects keep. */
void incstack__validate_hide_rules(stack *s)
{
	if (s->mode != INCSTACK_MODE_VALIDATE)
		return;
	for (struct chunk *c = s->arena.first; c; c = c->next)
		for (object *o = c->objects; o < chunk_end(&s->arena, c); o++)
			if (o->flags & INCSTACK_OBJECT_RAW)
				o->position = -1;
}
