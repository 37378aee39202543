/* SPDX-License-Identifier: MIT
 *
 * The contract with code that changes a stack or the code that runs on it: deoptimizers that
 * rewrite return addresses, on-stack replacement that moves a frame, runtimes that move a stack
 * or unload code. docs/embedding.md describes the contract.
 */
#include "barrier.h"
#include "fault.h"
#include "operation.h"
#include "queue.h"
#include "retrieve.h"
#include "walk.h"

/* The known object whose return slot is `slot`, or null. */
static object *known_at(stack *s, uintptr_t slot)
{
	object *o = s->newest;
	while (o && (uintptr_t)object_slot(o) < slot)
		o = physical_parent(o);
	return o && (uintptr_t)object_slot(o) == slot ? o : NULL;
}

/* Moves a return slot. A frame pointer that is recorded for the frame of the slot, and that
 * points into that frame, is shifted too. */
static void move_slot(stack *s, uintptr_t old, uintptr_t new)
{
	object *own = NULL, *o = s->newest, *moved = known_at(s, old);
	for (; o && (uintptr_t)object_slot(o) < old; o = physical_parent(o))
		own = o;
	if (own)
		incstack__barrier_shift_fp(own, own->address, old, new - old);
	if (moved)
		moved->address = new + sizeof(uintptr_t);
}

/* Renames a frame on a stack that the embedder walks. */
static void rename_frame(stack *s, uintptr_t old, uintptr_t new)
{
	for (object *o = s->newest; o; o = (object *)o->parent)
		if (o->address == old)
			o->address = new;
}

static int enter_slot(stack *s, uintptr_t slot)
{
	int error = enter(s);
	if (error)
		return error;
	if (!slot || slot % sizeof(uintptr_t))
		error = INCSTACK_EINVAL;
	else if (s->by_embedder || slot < s->low || slot >= s->high)
		error = s->by_embedder ? INCSTACK_EINVAL : INCSTACK_ERANGE;
	if (error)
		leave(s);
	return error;
}

int incstack_slot_write(struct incstack_stack *s, uintptr_t *slot, uintptr_t resume)
{
	int error = enter_slot(s, (uintptr_t)slot);
	if (error)
		return error;
	if (FAULT(FAULT_POSITION_REWRITTEN) && known_at(s, (uintptr_t)slot))
		known_at(s, (uintptr_t)slot)->function = resume;
	if (is_thunk(*slot))
		thunk_cell(*slot)->resume = resume;
	else
		*slot = resume;
	leave(s);
	return 0;
}

static int check_new_slot(const stack *s, uintptr_t slot)
{
	if (!slot || (!s->by_embedder && slot % sizeof(uintptr_t)))
		return INCSTACK_EINVAL;
	return s->by_embedder || inside(s, slot) ? 0 : INCSTACK_ERANGE;
}

int incstack_stack_frame_moved(struct incstack_stack *s, uintptr_t old_slot, uintptr_t new_slot)
{
	bool by_embedder = s && s->by_embedder;
	int error = by_embedder ? enter(s) : enter_slot(s, old_slot);
	if (error)
		return error;
	error = old_slot ? check_new_slot(s, new_slot) : INCSTACK_EINVAL;
	if (!error && by_embedder)
		rename_frame(s, old_slot, new_slot);
	else if (!error)
		move_slot(s, old_slot, new_slot);
	if (!error)
		incstack__queue_unsettle(s); /* one of them may wait for that frame */
	leave(s);
	return error;
}

int incstack_stack_moved(struct incstack_stack *s, uintptr_t new_low, uintptr_t new_high)
{
	int error = enter(s);
	if (error)
		return error;
	if (s->by_embedder || new_low >= new_high || (new_low | new_high) % sizeof(uintptr_t)) {
		leave(s);
		return INCSTACK_EINVAL;
	}
	uintptr_t delta = new_high - s->high;
	for (object *o = s->newest; o; o = (object *)o->parent) {
		o->address += delta;
		incstack__barrier_shift_fp(o, s->low, s->high, delta);
	}
	incstack__barriers_moved(s, delta);
	incstack__queue_moved(s, delta);
	s->low = new_low;
	s->high = new_high;
	leave(s);
	return 0;
}

int incstack_code_unloading(struct incstack_runtime *rt, struct incstack_stack *s, uintptr_t low,
			    uintptr_t high)
{
	if (!rt || low >= high || (s && s->runtime != rt))
		return INCSTACK_EINVAL;
	if (s) {
		int error = enter(s);
		if (error)
			return error;
		incstack__known_remove_popped(s, __builtin_frame_address(0));
		error = incstack__decode_range(s, low, high - low);
		leave(s);
		if (error)
			return error;
	}
	incstack__rules_invalidate(rt, low, high);
	return 0;
}
