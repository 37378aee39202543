/* SPDX-License-Identifier: MIT
 *
 * Completes the open traces and hands them over. The known chain is first copied to a new
 * arena, so that nothing else uses the objects of the tree.
 */
#include <string.h>

#include "barrier.h"
#include "decode.h"
#include "distance.h"
#include "fault.h"
#include "mode.h"
#include "operation.h"
#include "remembered.h"
#include "retrieve.h"
#include "signals.h"
#include "validate.h"
#include "walk.h"

/* Fills the gap of o. If the walk is cut before it reaches the known chain, *rest is that chain.
 * On an error the gap stays. */
static int fill(stack *s, object *o, const struct walker *w, object **rest)
{
	object filled = *o;
	struct path p = {.child = &filled, .known = (object *)o->parent, .here = true};
	p.at = (struct cursor){.pc = o->function, .sp = o->address, .fp = incstack__barrier_fp(o)};
	filled.flags &= ~(uint32_t)OBJECT_GAP;
	filled.parent = NULL;
	s->found.cut = NULL;
	object *known = walk_callers(w, &p);
	if (s->found.cut && s->found.no_memory && w->grow) {
		s->found.cut->flags &= ~(uint32_t)INCSTACK_OBJECT_TRUNCATED;
		s->arena.truncated--;
		s->stats.truncated--;
		return INCSTACK_ENOMEM;
	}
	*rest = s->found.cut ? known : NULL;
	*o = filled;
	return 0;
}

/* Skips from o over objects without a gap that follow each other in memory as they do in the
 * chain. Returns the last of them, or the first object with a gap. The next address does not
 * depend on a load of the parent pointer, so the loads overlap. */
static object *skip_filled(object *o)
{
	while (o->parent == o + 1 && !(o->flags & OBJECT_GAP))
		o++;
	return o;
}

/* Fills every gap of the known chain. Returns ENOMEM, which only happens with `grow`, if gaps
 * are left. Where a walk is cut, the chain ends. The part beyond the cut is still completed for
 * the older traces that lead there, and its barriers are lifted, because no later walk would
 * find them. */
int incstack__complete(stack *s, bool grow)
{
	const struct walker w = {stepper_of(s, ASK_DIRECTLY), s, grow, UINT32_MAX, UINTPTR_MAX};
	bool lost = false;
	for (object *o = s->newest, *rest = NULL; o; o = rest ? rest : (object *)o->parent) {
		rest = NULL;
		o = lost ? o : skip_filled(o);
		if (o->flags & OBJECT_GAP && !FAULT(FAULT_INCOMPLETE) && fill(s, o, &w, &rest)) {
			if (!lost)
				return INCSTACK_ENOMEM;
			rest = (object *)o->parent;
			incstack__cut(s, o);
		}
		if (lost && o->flags & OBJECT_BARRIER)
			s->kind->lift(s, o, true);
		lost = lost || rest;
	}
	return 0;
}

/* Lifts the barriers of o and its callers. */
static void lift(stack *s, object *o, bool certain)
{
	for (object *next; o; o = next) {
		next = (object *)o->parent;
		if (o->flags & OBJECT_BARRIER)
			s->kind->lift(s, o, certain);
		if (o->flags & OBJECT_GAP)
			incstack__cut(s, o);
	}
}

/* Captures callers of o, which has a gap: as many as a sample would, down to a new barrier or to
 * the known chain. If the walk is cut, the known chain is out of reach, and its barriers are
 * lifted. Returns false if there is no memory; the gap stays then. */
bool incstack__gap_narrow(stack *s, object *o)
{
	const struct walker w = {stepper_of(s, ASK_DIRECTLY), s, true, s->walk_limit, 0};
	object *rest = NULL;
	if (fill(s, o, &w, &rest))
		return false;
	lift(s, rest, true);
	return true;
}

/* Lifts all barriers of the known chain. `certain`: a walk from the running frame met them. */
void incstack__lift_all(stack *s, bool certain)
{
	lift(s, s->newest, certain);
}

/* Lifts all barriers but the youngest barrier, which guards all frames below it. The gaps are
 * filled first. A stack with a million frames may have a barrier for each of them, but there are
 * not so many thunks, and a sample that gets no thunk walks to the last barrier. `frame` is the
 * frame of the public function that the owner has called. */
void incstack__machine_thin(stack *s, const uintptr_t *frame)
{
	s->tally.thinned = s->stats.planted;
	if (!incstack__machine_remove_popped(s, frame) || incstack__complete(s, true))
		return;
	const object *youngest = next_barrier(s->newest);
	if (youngest)
		lift(s, physical_parent(youngest), true);
	incstack__barriers_give_spare(s);
}

/* Whether copying is all that must be done for o. */
static bool is_plain(const object *o)
{
	const uint32_t relevant =
		INCSTACK_OBJECT_FILLED | OBJECT_BARRIER | INCSTACK_OBJECT_TRUNCATED;
	return (o->flags & relevant) == INCSTACK_OBJECT_FILLED;
}

/* Copies callers of *o as long as the caller is the next object in memory and plain. `copy` is
 * the copy of *o, the last object in the arena. As in skip_filled(), the loads overlap. Sets *o
 * to the last object copied and returns its copy. */
static object *copy_neighbours(stack *s, object **o, object *copy)
{
	object *from = *o;
	for (; from->parent == from + 1 && is_plain(from + 1) && arena_fits(&s->arena, 1);
	     s->arena.object++) {
		copy->parent = copy + 1;
		*++copy = *++from;
	}
	*o = from;
	return copy;
}

/* Copies the known chain into the (new) arena of s. *last is the oldest object that has a gap
 * or a barrier to be moved to its copy; it is never that of an inlined frame. Returns false if
 * there is no memory. */
static bool copy_known(stack *s, object *o, const object **last)
{
	object *copy = NULL;
	*last = NULL;
	for (; o; o = (object *)o->parent) {
		object *c = arena_object(s->runtime, &s->arena, true, *o);
		if (!c)
			return false;
		s->arena.truncated += !!(o->flags & INCSTACK_OBJECT_TRUNCATED);
		if ((o->flags & (INCSTACK_OBJECT_FILLED | OBJECT_BARRIER)) !=
		    INCSTACK_OBJECT_FILLED)
			*last = o;
		if (copy)
			copy->parent = c;
		else
			set_newest(s, c);
		copy = copy_neighbours(s, &o, c);
		copy->parent = NULL;
	}
	return true;
}

/* Moves the barriers of the old objects, up to `last`, to the copies. A gap that could not be
 * completed stays only in the copy. The objects of inlined frames may lie between the old
 * objects by now. */
static void move_barriers(stack *s, object *old, object *copy, const object *last)
{
	for (object *next = last ? old : NULL; next; old = next, copy = physical_parent(copy)) {
		next = old == last ? NULL : physical_parent(old);
		incstack__barrier_move(old, copy);
		old->flags &= OBJECT_FLAGS & ~(uint32_t)OBJECT_BARRIER;
		old->flags |= INCSTACK_OBJECT_FILLED;
		if (old->flags & OBJECT_GAP)
			incstack__cut(s, old);
	}
}

static bool decode(stack *s, object *o)
{
	struct incstack_frame frame = {o->function, o->address, 0,
				       o->flags & INCSTACK_OBJECT_EXACT ? INCSTACK_FRAME_EXACT : 0,
				       0};
	return incstack__decode(s, o, &frame, ASK_DIRECTLY, true);
}

/* Whether o can be decoded now. A position that was stored in the frame is gone, so an object
 * with DECODE_NOW stays raw. A skeleton still needs its raw position. */
static bool decodable(const object *o)
{
	const uint32_t relevant = INCSTACK_OBJECT_RAW | OBJECT_DECODE_NOW | OBJECT_GAP;
	return (o->flags & relevant) == INCSTACK_OBJECT_RAW;
}

/* Whether the position of o is in [low, low + bytes); UINTPTR_MAX bytes means everywhere. If a
 * call is the last instruction of the code, the return address is the end of the code, so a
 * return address is looked up by the byte before it. */
static bool stands_in(const object *o, uintptr_t low, uintptr_t bytes)
{
	uintptr_t address = o->function - !(o->flags & INCSTACK_OBJECT_EXACT);
	return bytes == UINTPTR_MAX || address - low < bytes;
}

/* Decodes the objects whose code is in [low, low + bytes). Decoding adds objects at the end, so
 * the end is read again in each iteration; the added objects are already decoded. */
int incstack__decode_range(stack *s, uintptr_t low, uintptr_t bytes)
{
	if (!s->runtime->embedder.code.decode)
		return 0;
	for (struct chunk *c = s->arena.first; c; c = c->next)
		for (object *o = c->objects; o < chunk_end(&s->arena, c); o++)
			if (decodable(o) && stands_in(o, low, bytes) && !decode(s, o))
				return INCSTACK_ENOMEM;
	return 0;
}

/* Makes a tree of the chunks in use. */
static struct incstack_tree *finish(stack *s, struct arena *used)
{
	struct incstack_tree *tree = &used->first->tree;
	used->first->handed_over = true;
	/* relaxed: the stack is also a user. */
	atomic_fetch_add_explicit(&s->runtime->users, 1, memory_order_relaxed);
	tree->count = s->samples - s->tally.retrieved;
	tree->objects = 0;
	tree->truncated = used->truncated;
	used->current->objects_end = chunk_end(used, used->current);
	for (const struct chunk *c = used->first; c; c = c->next)
		tree->objects += (uint64_t)(c->objects_end - c->objects);
	incstack__distance_clear_last(s);
	s->last = first_trace(s);
	s->tally.retrieved = s->samples;
	return tree;
}

/* Decodes the objects of the tree. The objects of inlined frames must be allocated in the tree's
 * arena, so this is the stack's arena for the time. */
static int decode_used(stack *s, struct arena *used)
{
	struct arena fresh = s->arena;
	s->arena = *used;
	int error = incstack__decode_range(s, 0, UINTPTR_MAX);
	if (!error)
		incstack__validate_hide_rules(s);
	*used = s->arena;
	s->arena = fresh;
	return error;
}

static int hand_over(stack *s, struct incstack_tree **tree)
{
	object *newest = s->newest;
	const object *last;
	struct arena used;
	incstack__remembered_clear(s);
	incstack__arena_split(&s->arena, &used);
	set_newest(s, NULL);
	if (incstack__arena_open(s->runtime, &s->arena) || !copy_known(s, newest, &last) ||
	    decode_used(s, &used)) {
		incstack__arena_join(&s->arena, &used);
		set_newest(s, newest);
		return INCSTACK_ENOMEM;
	}
	uint64_t truncated = s->arena.truncated;
	move_barriers(s, newest, s->newest, last);
	used.truncated += s->arena.truncated - truncated;
	s->arena.truncated = truncated;
	*tree = finish(s, &used);
	return 0;
}

/* Hands over with signals blocked, because a jump out of a handler would leave it half done. */
static int hand_over_whole(stack *s, struct incstack_tree **tree)
{
	uint64_t before;
	bool blocked = incstack__signals_block(&before);
	int error = hand_over(s, tree);
	incstack__signals_restore(blocked, &before);
	return error;
}

int incstack_stack_retrieve(struct incstack_stack *s, struct incstack_tree **tree)
{
	int error = enter(s);
	if (error)
		return error;
	if (tree) {
		incstack__limbo_empty(s);
		incstack__rule_reserve(s->runtime);
		incstack__rule_learn_wanted(s->runtime);
		if (s->kind->remove_popped(s, __builtin_frame_address(0)))
			error = incstack__complete(s, true);
		if (!error)
			error = hand_over_whole(s, tree);
		incstack__barriers_reclaim(s);
		incstack__copied_check(s, __builtin_frame_address(0));
		incstack__pool_reserve(s);
	} else {
		error = INCSTACK_EINVAL;
	}
	leave(s);
	return error;
}

int incstack__stack_complete(struct incstack_stack *s)
{
	int error = enter(s);
	if (error)
		return error;
	if (s->kind->remove_popped(s, __builtin_frame_address(0)))
		error = incstack__complete(s, true);
	leave(s);
	return error;
}

int incstack__stack_complete_at(struct incstack_stack *s, const struct incstack_top *top)
{
	int error = enter(s);
	if (error)
		return error;
	if (s->kind->remove_popped_at(s, top))
		error = incstack__complete(s, true);
	leave(s);
	return error;
}

bool incstack__stack_has_gaps(const struct incstack_stack *s)
{
	for (object *o = s ? s->newest : NULL; o; o = (object *)o->parent) {
		o = skip_filled(o);
		if (o->flags & OBJECT_GAP)
			return true;
	}
	return false;
}

const struct incstack_tree *incstack_stack_tree(const struct incstack_stack *s)
{
	return s ? &s->arena.first->tree : NULL;
}

void incstack_tree_release(struct incstack_tree *tree)
{
	if (!tree)
		return;
	struct chunk *first = (struct chunk *)((char *)tree - offsetof(struct chunk, tree));
	runtime *rt = first->runtime;
	if (!first->handed_over)
		return;
	first->handed_over = false;
	incstack__arena_free(rt, first);
	incstack__runtime_drop(rt);
}
