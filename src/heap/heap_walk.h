/* SPDX-License-Identifier: MIT
 *
 * How a walk captures a frame and how it ends, inline.
 */
#ifndef INCSTACK__HEAP_WALK_H
#define INCSTACK__HEAP_WALK_H

#include <string.h>

#include "capture.h"

enum { FIRST_TURN = 32 };

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

/* The object of the youngest of the oldest `upto` barriers if that is on the frame *f, which has this caller;
 * otherwise null. */
static inline const object *youngest(const stack *s, uint32_t upto, const frame *f,
				     uintptr_t caller)
{
	const struct barrier *b = upto ? &s->barriers[upto - 1] : NULL;
	return b && b->at->frame.name == f->name && is_same(b, f, caller) ? b->at : NULL;
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
	memset(&o->frame.position, 0, sizeof(frame) - offsetof(frame, position));
	uintptr_t caller = options->walk(options->context, identity, name, &o->frame);
	o->frame.name = name;
	o->parent = o + 1;
	return caller;
}

#endif
