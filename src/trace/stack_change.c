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
#include "stack_change.h"

/* The known object whose return slot is `slot`, or null. */
static object *known_at(stack *s, uintptr_t slot)
{
	object *o = s->newest;
	while (o && (uintptr_t)object_slot(o) < slot)
		o = physical_parent(o);
	return o && (uintptr_t)object_slot(o) == slot ? o : NULL;
}

/* Moves a return slot. Also shifts a frame pointer that is recorded for the frame of the slot and
 * that points into this frame. */
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

/* Whether a return slot may be there; if not, an error. */
static int check_slot(const stack *s, uintptr_t slot)
{
	if (!slot || slot % sizeof(uintptr_t))
		return INCSTACK_EINVAL;
	return s->kind->holds(s, slot, sizeof(uintptr_t));
}

static void write_slot(stack *s, uintptr_t *slot, uintptr_t resume)
{
	if (FAULT(FAULT_POSITION_REWRITTEN) && known_at(s, (uintptr_t)slot))
		known_at(s, (uintptr_t)slot)->function = resume;
	if (is_thunk(*slot))
		thunk_cell(*slot)->resume = resume;
	else
		*slot = resume;
}

int incstack_stack_slot_write(struct incstack_stack *s, uintptr_t *slot, uintptr_t resume)
{
	int error = enter(s);
	if (error)
		return error;
	error = check_slot(s, (uintptr_t)slot);
	if (!error)
		write_slot(s, slot, resume);
	leave(s);
	return error;
}

int incstack__machine_frame_moved(stack *s, uintptr_t old, uintptr_t new)
{
	int error = check_slot(s, old);
	if (!error)
		error = check_slot(s, new);
	if (!error)
		move_slot(s, old, new);
	return error;
}

int incstack_stack_frame_moved(struct incstack_stack *s, uintptr_t old_slot, uintptr_t new_slot)
{
	int error = enter(s);
	if (error)
		return error;
	error = s->kind->frame_moved(s, old_slot, new_slot);
	if (!error)
		incstack__queue_unsettle(s); /* one of them may wait for that frame */
	leave(s);
	return error;
}

int incstack__machine_moved(stack *s, uintptr_t new_low, uintptr_t new_high)
{
	if (new_low >= new_high || (new_low | new_high) % sizeof(uintptr_t))
		return INCSTACK_EINVAL;
	uintptr_t delta = new_high - s->high;
	for (object *o = s->newest; o; o = (object *)o->parent) {
		o->address += delta;
		incstack__barrier_shift_fp(o, s->low, s->high, delta);
	}
	incstack__barriers_moved(s, delta);
	incstack__queue_moved(s, delta);
	s->low = new_low;
	s->high = new_high;
	if (bounds_known(s))
		s->given = (struct bounds){new_low, new_high};
	return 0;
}

int incstack_stack_moved(struct incstack_stack *s, uintptr_t new_low, uintptr_t new_high)
{
	int error = enter(s);
	if (error)
		return error;
	error = s->kind->moved(s, new_low, new_high);
	leave(s);
	return error;
}

int incstack_runtime_code_unloading(struct incstack_runtime *rt, struct incstack_stack *s,
				    uintptr_t low, uintptr_t high)
{
	if (!rt || low >= high || (s && s->runtime != rt))
		return INCSTACK_EINVAL;
	if (s) {
		int error = enter(s);
		if (error)
			return error;
		s->kind->remove_popped(s, __builtin_frame_address(0));
		error = incstack__decode_range(s, low, high - low);
		leave(s);
		if (error)
			return error;
	}
	incstack__rules_invalidate(rt, low, high);
	return 0;
}
