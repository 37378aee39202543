/* SPDX-License-Identifier: MIT
 *
 * Stacks that only the embedder can walk and that have the embedder's own return barrier, for
 * example the heap frames of an interpreter, or a virtual machine with a stack watermark. The
 * embedder names each frame by a number. The numbers have no order, so a walk can meet a known
 * frame only where the embedder says that the frame is armed. See embedder.h: `caller`, `arm`.
 */
#include "barrier.h"
#include "decode.h"
#include "embedder_walk.h"

/* Returns the known object with a barrier on the frame, or null. Younger known objects were
 * popped unannounced and are removed from *known. Null leaves *known unchanged. */
object *incstack__frames_meet(stack *s, object **known, uintptr_t frame)
{
	object *k = *known;
	while (k && !(k->flags & OBJECT_BARRIER && k->address == frame))
		k = physical_parent(k);
	while (k && *known != k)
		*known = incstack__known_pop(s, *known);
	return k;
}

/* Removes from the known chain the frames that were popped unannounced, if the embedder tells
 * where the stack ends. Returns false if a walk from there reaches no known frame. */
bool incstack__frames_remove_popped(stack *s)
{
	const runtime *rt = s->runtime;
	struct incstack_frame f = {0};
	object *known = s->newest;
	if (!known || !rt->embedder.youngest)
		return true;
	int more = rt->embedder.youngest(rt->context, s->identity, &f);
	while (more > 0 &&
	       !(f.flags & INCSTACK_FRAME_ARMED && incstack__frames_meet(s, &known, f.sp))) {
		f.flags = 0;
		more = rt->embedder.caller(rt->context, s->identity, &f);
	}
	while (more == 0 && known) /* the whole stack was seen, and no barrier */
		known = incstack__known_pop(s, known);
	set_newest(s, known);
	return more >= 0;
}

static object *make(const struct walker *w, const struct incstack_frame *f, uint32_t flags)
{
	if (f->flags & INCSTACK_FRAME_EXACT)
		flags |= INCSTACK_OBJECT_EXACT;
	if (f->flags & INCSTACK_FRAME_DECODE_NOW)
		flags |= OBJECT_DECODE_NOW;
	return arena_object(w->stack->runtime, &w->stack->arena, w->grow,
			    (object){NULL, f->pc, f->sp, -1, flags | INCSTACK_OBJECT_RAW});
}

/* Makes a skeleton with a barrier on the frame. Returns null if that is impossible. */
static object *plant(const struct walker *w, const struct incstack_frame *f, object *known)
{
	object *o = make(w, f, OBJECT_GAP);
	if (!o)
		return NULL;
	if (!incstack__barrier_plant(w->stack, o, f->fp)) {
		w->stack->arena.object--;
		return NULL;
	}
	o->parent = known;
	return o;
}

/* Decodes o now if its position cannot be read later. Returns null if there is no memory. */
static object *decoded(const struct walker *w, object *o, const struct incstack_frame *f)
{
	if (!(o->flags & OBJECT_DECODE_NOW) || !(o->flags & INCSTACK_OBJECT_RAW) ||
	    !w->stack->runtime->embedder.decode)
		return o;
	return incstack__decode(w->stack, o, f, w->steps.ask, w->grow);
}

static object *arrive(stack *s, object *child, object *k, object *met)
{
	child->parent = k;
	s->first_known = met;
	return k;
}

static object *cut(stack *s, object *child, object *known, bool no_memory)
{
	incstack__cut_walk(s, child, no_memory);
	return known;
}

static object *end(stack *s, object *child, object *known)
{
	child->flags |= INCSTACK_OBJECT_BASE;
	while (known)
		known = incstack__known_pop(s, known);
	return NULL;
}

/* incstack__walk() for a stack that the embedder walks. */
object *incstack__frames_walk(const struct walker *w, const struct cursor *at, object *child,
			      object *known)
{
	stack *s = w->stack;
	const runtime *rt = s->runtime;
	struct incstack_frame f = {at->pc, at->sp, at->fp, at->exact ? INCSTACK_FRAME_EXACT : 0, 0};
	s->first_known = NULL;
	for (uint32_t n = 0;; n++) {
		object *last = decoded(w, child, &f);
		if (!last)
			return cut(s, child, known, true);
		child = last;
		f.flags = 0;
		int more = rt->embedder.caller(rt->context, s->identity, &f);
		s->walked++;
		if (more <= 0)
			return more ? cut(s, child, known, false) : end(s, child, known);
		object *k = f.flags & INCSTACK_FRAME_ARMED ? incstack__frames_meet(s, &known, f.sp)
							   : NULL;
		if (k)
			return arrive(s, child, k, k);
		bool due = n >= w->distance && s->mode == INCSTACK_MODE_EMBEDDER;
		if (due && (k = plant(w, &f, known)) != NULL)
			return arrive(s, child, k, known);
		k = make(w, &f, INCSTACK_OBJECT_FILLED);
		if (!k)
			return cut(s, child, known, true);
		child->parent = k;
		child = k;
	}
}
