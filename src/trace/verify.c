/* SPDX-License-Identifier: MIT
 *
 * Checks the invariants of docs/invariants.md on a stack. The numbers are those of the
 * document.
 */
#include "barrier.h"
#include "hooks.h"
#include "verify.h"

static bool barriers_are_live(const stack *s)
{
	for (const object *o = s->newest; o; o = o->parent)
		if (o->flags & OBJECT_BARRIER && !s->kind->is_live(s, o))
			return false;
	return true;
}

/* Each of the following checks the `most` youngest objects of the chain. */
static bool barriers_are_recorded(const stack *s, size_t most)
{
	for (const object *o = s->newest; o && most--; o = o->parent)
		if (o->flags & OBJECT_BARRIER && barrier_of(o->flags >> OBJECT_SHIFT)->object != o)
			return false;
	return true;
}

static bool gaps_are_guarded(const stack *s, size_t most)
{
	for (const object *o = s->newest; o && most--; o = o->parent)
		if (o->flags & OBJECT_GAP && !(o->flags & OBJECT_BARRIER))
			return false;
	return true;
}

static bool traces_have_tops(const stack *s, size_t most)
{
	for (const trace *t = *first_trace(s); t && most--; t = t->next)
		if (!t->top || !(t->top->flags & INCSTACK_OBJECT_FILLED))
			return false;
	return true;
}

/* The word with which a fast walk compares must be that of the youngest known object. */
static bool newest_is_right(const stack *s)
{
	const object *o = s->newest;
	return s->newest_thunk == barrier_word(o);
}

/* Returns the number of the first invariant that does not hold, or 0. I2 is not checked, because a
 * frame that was left unannounced breaks I2 until the next walk, which counts the frame. */
int incstack__broken(const stack *s, size_t most)
{
	const int broken = s->kind->broken(s, most);
	if (broken)
		return broken;
	if (!newest_is_right(s))
		return 3;
	if (!barriers_are_recorded(s, most))
		return 4;
	if (!gaps_are_guarded(s, most))
		return 5;
	if (!traces_have_tops(s, most))
		return 6;
	return 0;
}

int incstack__stack_verify(const struct incstack_stack *s)
{
	int broken = incstack__broken(s, SIZE_MAX);
	return broken ? broken : barriers_are_live(s) ? 0 : 2;
}

uint64_t incstack__stack_broken(const struct incstack_stack *s)
{
	return s->broken;
}
