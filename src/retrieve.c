/* SPDX-License-Identifier: MIT
 *
 * Completing the open traces and handing them over. What is still live is
 * copied to a fresh arena first, so the tree owns its objects alone.
 */
#include <string.h>

#include "internal.h"

/* Frames below the caller's are gone, also if nobody said so, and so is one whose
 * slot shows something else than its thunk. */
static void pop_dead(stack *s, uintptr_t sp)
{
	const object *last = NULL;
	for (const object *o = s->newest; o; o = o->parent)
		if ((sp >= s->low && o->address < sp) ||
		    (o->flags & OBJECT_BARRIER && !incstack__barrier_live(o)))
			last = o;
	while (last && s->newest) {
		const object *o = s->newest;
		s->newest = incstack__known_pop(s, s->newest);
		if (o == last)
			return;
	}
}

/* Fills every gap of the known chain. sp: of the public function's caller. */
void incstack__complete(stack *s, uintptr_t sp, bool grow)
{
	pop_dead(s, sp < s->high ? sp : 0);
	for (object *o = s->newest; o; o = (object *)o->parent) {
		if (!(o->flags & OBJECT_GAP))
			continue;
		struct walker w = {s, ASK_DIRECTLY, grow, UINT32_MAX, UINTPTR_MAX};
		struct cursor at = {
			.pc = o->method, .sp = o->address, .fp = incstack__barrier_fp(o)};
		object *known = (object *)o->parent;
		o->flags &= ~(uint32_t)OBJECT_GAP;
		incstack__walk(&w, &at, o, known);
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
		object *c = arena_object(s, true, *o);
		if (!c)
			return false;
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
	incstack__decode(s, o, &frame, ASK_DIRECTLY, true);
}

static const object *end_of(const stack *s, const struct chunk *c)
{
	return c == s->arena.current ? s->arena.object : c->objects_end;
}

/* Objects that decoding adds are decoded: the end is asked for each time. */
static void decode_chunk(stack *s, struct chunk *c)
{
	for (object *o = c->objects; o < end_of(s, c); o++)
		if (o->flags & INCSTACK_OBJECT_RAW)
			decode(s, o);
}

static uint64_t close_chunk(struct chunk *c, const object *end)
{
	uint64_t truncated = 0;
	for (object *o = c->objects; o < end; o++) {
		truncated += o->flags / INCSTACK_OBJECT_TRUNCATED & 1;
		if (o->flags & INCSTACK_OBJECT_RAW)
			o->bci = -1; /* was the rule */
	}
	return truncated;
}

static void decode_chunks(stack *s, struct incstack_tree *tree)
{
	for (struct chunk *c = s->arena.first; c; c = c->next) {
		if (s->runtime->embedder.decode)
			decode_chunk(s, c);
		tree->truncated += close_chunk(c, end_of(s, c));
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
			    o->method - low < high - low && s->runtime->embedder.decode)
				decode(s, o);
}

/* Makes a tree of what was used. Inlined frames that decoding adds belong to it. */
static struct incstack_tree *finish(stack *s, struct arena *used)
{
	struct arena fresh = s->arena;
	struct incstack_tree *tree = &used->first->tree;
	*tree = (struct incstack_tree){.traces = s->first};
	for (const trace *i = s->first; i; i = i->next)
		tree->count++;
	s->arena = *used;
	decode_chunks(s, tree);
	s->arena.current->objects_end = s->arena.object;
	incstack__arena_free(s->runtime, s->arena.spare);
	s->arena = fresh;
	incstack__distance_forget(s);
	s->first = NULL;
	s->last = &s->first;
	return tree;
}

static int hand_over(stack *s, struct incstack_tree **tree)
{
	object *newest = s->newest;
	struct arena used;
	incstack__arena_split(s, &used);
	s->newest = NULL;
	int error = incstack__arena_open(s);
	if (!error && !copy_known(s, newest))
		error = INCSTACK_ENOMEM;
	if (error) {
		incstack__arena_join(s, &used);
		s->newest = newest;
		return INCSTACK_ENOMEM;
	}
	move_barriers(newest, s->newest);
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
		incstack__complete(s, caller_sp(), true);
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
