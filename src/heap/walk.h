/* SPDX-License-Identifier: MIT
 *
 * The first frames of a walk, inline. What is special is left to capture.c.
 */
#ifndef INCSTACK__HEAP_WALK_H
#define INCSTACK__HEAP_WALK_H

#include "capture.h"

enum { FIRST_TURN = 32, QUICK = FIRST_TURN };

/* Whether the frame *f with this caller is that of the barrier, at the same position. */
static inline bool is_same(const struct barrier *b, const frame *f, uintptr_t caller)
{
	const object *o = b->at;
	if (o->frame.function != f->function || o->frame.position != f->position)
		return false;
	if (b->caller)
		return b->caller == caller;
	if (o->frame.flags & INCSTACK_HEAP_TRUNCATED)
		return true;
	return caller == (o->parent ? o->parent->frame.name : 0);
}

static inline bool meet_quickly(const stack *s, uint32_t upto, const frame *f, uintptr_t caller)
{
	return upto && s->barriers[upto - 1].at->frame.name == f->name &&
	       is_same(&s->barriers[upto - 1], f, caller);
}

static inline int finish(stack *s, struct walk *w, uint32_t frames, object *o, int end)
{
	w->frames = frames;
	s->stats.walked += frames + (end != END_TOP_MARKED);
	s->arena.next = o + (end != END_KNOWN && end != END_TOP_MARKED);
	return end;
}

/* The walk ends at the frame of a barrier, the youngest of w->upto. *link gets its object. */
static inline int finish_known(stack *s, struct walk *w, uint32_t frames, object *o,
			       const object **link)
{
	*link = w->old = s->barriers[w->upto - 1].at;
	return finish(s, w, frames, o, END_KNOWN);
}

/* Captures the frame. Returns its caller. The frames that follow each other lie side by side, so the pointer
 * to the next is known before that is captured. */
static inline uintptr_t capture_frame(const struct incstack_heap_options *options, void *identity,
				      object *o, uintptr_t name)
{
	o->frame.position = 0;
	o->frame.flags = o->frame.kind = 0;
	uintptr_t caller = options->walk(options->context, identity, name, &o->frame);
	o->frame.name = name;
	o->parent = o + 1;
	return caller;
}

/* A copy of *w, so that the compiler may keep the original in registers. */
static inline int capture_slowly(stack *s, struct walk *w, object *o, uintptr_t name, bool marks)
{
	struct walk copy = *w;
	int end = incstack__heap_capture_rest(s, &copy, o, name, marks);
	*w = copy;
	return end;
}

/* The frame that was just captured in *o has a mark. *end gets how the walk ends. Returns false if the mark
 * must be looked at more closely. */
static inline bool ends_at_mark(stack *s, struct walk *w, object *first, object *o,
				uintptr_t caller, int *end)
{
	if (w->is_top && o == first) {
		*end = finish(s, w, 0, o, END_TOP_MARKED);
		return true;
	}
	if (!meet_quickly(s, w->upto, &o->frame, caller))
		return false;
	*end = finish_known(s, w, (uint32_t)(o - first), o, o == first ? w->link : &o[-1].parent);
	return true;
}

/* Captures frames. With `marks` it heeds marks and sets one. Few frames, at which nothing is special, are all
 * that most samples have to do. */
static ALWAYS_INLINE int capture(stack *s, struct walk *w, const bool marks)
{
	int end = reserve(s, 1);
	if (!LIKELY(!end))
		return end;
	const struct incstack_heap_options *options = &s->heap->options;
	object *const first = s->arena.next;
	const size_t room = (size_t)(s->arena.end - first);
	const size_t simple = w->limit < QUICK ? w->limit : QUICK;
	const object *const stop = first + (simple < room ? simple : room);
	uintptr_t name = w->name;
	object *o = first;
	*w->link = first;
	w->old = NULL;
	while (o < stop) {
		const uintptr_t caller = capture_frame(options, s->identity, o, name);
		const uint16_t flags = o->frame.flags;
		if (!LIKELY(!flags)) {
			if (marks && flags & INCSTACK_HEAP_MARKED) {
				if (LIKELY(ends_at_mark(s, w, first, o, caller, &end)))
					return end;
				break;
			}
			o->frame.flags = flags & INCSTACK_HEAP_OWN;
		}
		if (!LIKELY(is_name(caller))) {
			if (caller || w->upto)
				break;
			o->parent = NULL;
			o->frame.flags |= INCSTACK_HEAP_BASE;
			return finish(s, w, (uint32_t)(o - first), o, END_BASE);
		}
		name = caller;
		o++;
	}
	return capture_slowly(s, w, o, name, marks);
}

#endif
