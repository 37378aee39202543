/* SPDX-License-Identifier: MIT
 *
 * Completing the open traces and handing them over. What is still live is
 * copied to a fresh arena first, so the tree owns its objects alone.
 */
#include <string.h>

#include "internal.h"

/* Fills every gap of the known chain. */
void incstack__complete(stack *s, enum ask ask, bool grow)
{
	for (object *o = s->newest; o; o = (object *)o->parent) {
		if (!(o->flags & OBJECT_GAP))
			continue;
		struct walker w = {s, ask, grow, UINT32_MAX, UINTPTR_MAX};
		struct cursor at = {
			.pc = o->method, .sp = o->address, .fp = incstack__barrier_fp(o)};
		object *known = (object *)o->parent;
		o->flags &= ~(uint32_t)OBJECT_GAP;
		incstack__walk(&w, at, o, known);
	}
}

void incstack__lift_all(stack *s)
{
	for (object *o = s->newest; o; o = (object *)o->parent)
		if (o->flags & OBJECT_BARRIER)
			incstack__barrier_lift(s, o);
}

/* Copies the known chain into the (new) arena of s. False: no memory. */
static bool copy_known(stack *s, object *old)
{
	object *copy = NULL;
	for (object *o = old; o; o = (object *)o->parent) {
		object *c = arena_object(s, true);
		if (!c)
			return false;
		*c = *o;
		c->parent = NULL;
		if (copy)
			copy->parent = c;
		else
			s->newest = c;
		copy = c;
	}
	return true;
}

static void move_barriers(object *old, object *copy)
{
	for (; old; old = (object *)old->parent, copy = (object *)copy->parent) {
		incstack__barrier_move(old, copy);
		old->flags &= OBJECT_FLAGS & ~(uint32_t)OBJECT_BARRIER;
		old->flags |= INCSTACK_OBJECT_FILLED;
	}
}

static void decode(stack *s, object *o)
{
	struct incstack_frame frame = {o->method, o->address, 0,
				       o->flags & INCSTACK_OBJECT_EXACT ? INCSTACK_FRAME_EXACT : 0,
				       0};
	o->bci = -1;
	if (s->runtime->embedder.decode)
		incstack__decode(s, o, &frame, ASK_DIRECTLY, true);
}

static const object *end_of(const stack *s, const struct chunk *c)
{
	return c == s->arena.current ? s->arena.object : c->objects_end;
}

/* Objects that decoding adds are decoded: the end is asked for each time. */
static void decode_chunks(stack *s, struct incstack_tree *tree)
{
	for (struct chunk *c = s->arena.first; c; c = c->next) {
		for (object *o = c->objects; o < end_of(s, c); o++) {
			tree->truncated += !!(o->flags & INCSTACK_OBJECT_TRUNCATED);
			if (o->flags & INCSTACK_OBJECT_RAW)
				decode(s, o);
		}
		tree->objects += (uint64_t)(end_of(s, c) - c->objects);
	}
}

/* Decodes what was captured in [low, high) and is not on the stack any more, or
 * will leave it before it can be decoded. The live chain is copied first. */
void incstack__decode_range(stack *s, uintptr_t low, uintptr_t high)
{
	for (struct chunk *c = s->arena.first; c; c = c->next)
		for (object *o = c->objects; o < end_of(s, c); o++)
			if (o->flags & INCSTACK_OBJECT_RAW && !(o->flags & OBJECT_BARRIER) &&
			    o->method - low < high - low)
				decode(s, o);
}

static void hand_over(stack *s, struct arena *old, struct incstack_tree **tree)
{
	struct incstack_tree *t = &old->first->tree;
	*t = (struct incstack_tree){.traces = s->first};
	for (const trace *i = s->first; i; i = i->next)
		t->count++;
	struct arena fresh = s->arena;
	s->arena = *old; /* inlined frames belong to the tree */
	decode_chunks(s, t);
	s->arena.current->objects_end = s->arena.object;
	s->arena.current->next = s->arena.spare;
	s->arena = fresh;
	s->first = NULL;
	s->last = &s->first;
	*tree = t;
}

int incstack_retrieve(struct incstack_stack *s, struct incstack_tree **tree)
{
	int error = incstack__enter(s);
	if (error)
		return error;
	if (!tree) {
		leave(s);
		return INCSTACK_EINVAL;
	}
	incstack__limbo_empty(s);
	incstack__complete(s, ASK_DIRECTLY, true);
	struct arena old = s->arena;
	object *newest = s->newest;
	s->arena = (struct arena){0};
	s->newest = NULL;
	error = incstack__arena_grow(s);
	if (error || !copy_known(s, newest)) {
		incstack__arena_free(s->runtime, s->arena.first);
		s->arena = old;
		s->newest = newest;
		leave(s);
		return INCSTACK_ENOMEM;
	}
	move_barriers(newest, s->newest);
	hand_over(s, &old, tree);
	incstack__pool_reserve(s);
	leave(s);
	return 0;
}

int incstack_tree_release(struct incstack_tree *tree)
{
	if (!tree)
		return INCSTACK_EINVAL;
	struct chunk *first = (struct chunk *)((char *)tree - offsetof(struct chunk, tree));
	incstack__arena_free(first->runtime, first);
	return 0;
}
