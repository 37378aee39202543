/* SPDX-License-Identifier: MIT
 *
 * Executes docs/invariants.md over a stack. The numbers are those of the
 * document.
 */
#include "internal.h"

static bool ordered(const stack *s)
{
	uintptr_t last = 0;
	for (const object *o = s->newest; o; o = o->parent) {
		if (o->address < last || o->address <= s->low || o->address > s->high)
			return false;
		last = o->address;
	}
	return true;
}

static bool barriers_show_their_thunks(const stack *s)
{
	for (const object *o = s->newest; o; o = o->parent)
		if (o->flags & OBJECT_BARRIER && !incstack__barrier_live(s, o))
			return false;
	return true;
}

static bool gaps_are_guarded(const stack *s)
{
	for (const object *o = s->newest; o; o = o->parent)
		if (o->flags & OBJECT_GAP && !(o->flags & OBJECT_BARRIER))
			return false;
	return true;
}

static bool traces_have_tops(const stack *s)
{
	for (const trace *t = s->first; t; t = t->next)
		if (!t->top || !(t->top->flags & INCSTACK_OBJECT_FILLED))
			return false;
	return true;
}

int incstack_stack_verify(const struct incstack_stack *s)
{
	if (!s)
		return INCSTACK_EINVAL;
	if (!s->by_embedder && !ordered(s))
		return 1;
	if (!barriers_show_their_thunks(s))
		return 2;
	if (!gaps_are_guarded(s))
		return 5;
	if (!traces_have_tops(s))
		return 6;
	return 0;
}
