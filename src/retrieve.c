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
		if (!(o->flags & OBJECT_GAP) || FAULT(FAULT_INCOMPLETE))
			continue;
		struct walker w = {s, ask, grow, UINT32_MAX, UINTPTR_MAX};
		struct path p = {.child = o, .known = (object *)o->parent};
		p.at = (struct cursor){
			.pc = o->method, .sp = o->address, .fp = incstack__barrier_fp(o)};
		o->flags &= ~(uint32_t)OBJECT_GAP;
		o->parent = NULL;
		incstack__walk(&w, &p);
	}
}

void incstack__lift_all(stack *s)
{
	for (object *o = s->newest, *next; o; o = next) {
		next = (object *)o->parent;
		if (o->flags & OBJECT_BARRIER)
			incstack__barrier_lift(s, o);
		if (o->flags & OBJECT_GAP)
			incstack__cut(s, o);
	}
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
		s->arena.truncated += !!(o->flags & INCSTACK_OBJECT_TRUNCATED);
		if (copy)
			copy->parent = c;
		else
			set_newest(s, c);
		copy = c;
	}
	return true;
}

/* A gap that could not be completed stays one in the copy alone. */
static void move_barriers(stack *s, object *old, object *copy)
{
	for (object *next; old; old = next, copy = (object *)copy->parent) {
		next = (object *)old->parent;
		incstack__barrier_move(old, copy);
		old->flags &= OBJECT_FLAGS & ~(uint32_t)OBJECT_BARRIER;
		old->flags |= INCSTACK_OBJECT_FILLED;
		if (old->flags & OBJECT_GAP)
			incstack__cut(s, old);
	}
}

static void decode(stack *s, object *o)
{
	struct incstack_frame frame = {o->method, o->address, 0,
				       o->flags & INCSTACK_OBJECT_EXACT ? INCSTACK_FRAME_EXACT : 0,
				       0};
	incstack__decode(s, o, &frame, ASK_DIRECTLY, true);
}

static const object *end_of(const stack *s, const struct chunk *c)
{
	return c == s->arena.current ? s->arena.object : c->objects_end;
}

/* A position that lay in the frame is gone: what was not decoded stays so. */
static bool decodable(const object *o)
{
	return (o->flags & (INCSTACK_OBJECT_RAW | OBJECT_DECODE_NOW)) == INCSTACK_OBJECT_RAW;
}

/* Objects that decoding adds are decoded: the end is asked for each time. */
static void decode_chunk(stack *s, struct chunk *c)
{
	for (object *o = c->objects; o < end_of(s, c); o++)
		if (decodable(o))
			decode(s, o);
}

/* What validate keeps in raw objects is no position. */
void incstack__forget_rules(stack *s)
{
	for (struct chunk *c = s->arena.first; c; c = c->next)
		for (object *o = c->objects; o < end_of(s, c); o++)
			if (o->flags & INCSTACK_OBJECT_RAW)
				o->bci = -1;
}

static void decode_chunks(stack *s, struct incstack_tree *tree)
{
	if (s->mode == INCSTACK_MODE_VALIDATE)
		incstack__forget_rules(s);
	for (struct chunk *c = s->arena.first; c; c = c->next) {
		if (s->runtime->embedder.decode)
			decode_chunk(s, c);
		tree->objects += (uint64_t)(end_of(s, c) - c->objects);
	}
}

/* Decodes what was captured in [low, high) and is not on the stack any more, or
 * will leave it before it can be decoded. The live chain is copied first. */
void incstack__decode_range(stack *s, uintptr_t low, uintptr_t high)
{
	for (struct chunk *c = s->arena.first; c; c = c->next)
		for (object *o = c->objects; o < end_of(s, c); o++)
			if (decodable(o) && !(o->flags & OBJECT_BARRIER) &&
			    o->method - low < high - low && s->runtime->embedder.decode)
				decode(s, o);
}

/* Makes a tree of what was used. Inlined frames that decoding adds belong to it. */
static struct incstack_tree *finish(stack *s, struct arena *used)
{
	struct arena fresh = s->arena;
	struct incstack_tree *tree = &used->first->tree;
	*tree = (struct incstack_tree){.traces = s->first,
				       .count = s->stats.samples - s->retrieved,
				       .truncated = used->truncated};
	s->arena = *used;
	decode_chunks(s, tree);
	s->arena.current->objects_end = s->arena.object;
	incstack__arena_free(s->runtime, s->arena.spare);
	s->arena = fresh;
	incstack__distance_forget(s);
	s->first = NULL;
	s->last = &s->first;
	s->retrieved = s->stats.samples;
	return tree;
}

static int hand_over(stack *s, struct incstack_tree **tree)
{
	object *newest = s->newest;
	struct arena used;
	incstack__arena_split(s, &used);
	set_newest(s, NULL);
	int error = incstack__arena_open(s);
	if (!error && !copy_known(s, newest))
		error = INCSTACK_ENOMEM;
	if (error) {
		incstack__arena_join(s, &used);
		set_newest(s, newest);
		return INCSTACK_ENOMEM;
	}
	uint64_t truncated = s->arena.truncated;
	move_barriers(s, newest, s->newest);
	used.truncated += s->arena.truncated - truncated;
	s->arena.truncated = truncated;
	*tree = finish(s, &used);
	return 0;
}

int incstack_retrieve(struct incstack_stack *s, struct incstack_tree **tree)
{
	int error = enter(s);
	if (error)
		return error;
	if (tree) {
		incstack__limbo_empty(s);
		incstack__rule_learn_wanted(s->runtime);
		if (incstack__known_confirm(s, __builtin_frame_address(0)))
			incstack__complete(s, ASK_DIRECTLY, true);
		error = hand_over(s, tree);
		incstack__pool_reserve(s);
	} else {
		error = INCSTACK_EINVAL;
	}
	leave(s);
	return error;
}

int incstack_tree_release(struct incstack_tree *tree)
{
	if (!tree)
		return INCSTACK_EINVAL;
	struct chunk *first = (struct chunk *)((char *)tree - offsetof(struct chunk, tree));
	incstack__arena_free(first->runtime, first);
	return 0;
}
