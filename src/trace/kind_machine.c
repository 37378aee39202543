/* SPDX-License-Identifier: MIT
 *
 * The stack of a thread or of a coroutine, whose bounds are known. Unwind rules lead from frame to frame,
 * and thunks in return slots are the barriers.
 */
#include "kind_machine.h"

/* A return comes through its thunk. */
int incstack__machine_announced(stack *s, uintptr_t frame)
{
	(void)s;
	(void)frame;
	return INCSTACK_EINVAL;
}

void incstack__machine_abandon(stack *s)
{
	incstack__barriers_discard(s, false);
}

int incstack__machine_holds(const stack *s, uintptr_t address, size_t bytes)
{
	const bool inside = address >= s->low && address <= s->high && s->high - address >= bytes;
	return inside ? 0 : INCSTACK_ERANGE;
}

/* Frames below sp on the same stack are gone. An operation that began on another stack, such as a signal
 * stack, is over too if the thread runs on this stack, because nothing runs on this stack while that
 * operation is in progress. */
static bool left_behind(const stack *s, uintptr_t operation, uintptr_t sp)
{
	if (sp < s->low || sp > s->high)
		return false;
	return operation < sp || operation >= s->high;
}

static bool begins_at(const object *o, const struct incstack_top *top)
{
	return o && o->address == top->slot + sizeof(uintptr_t);
}

bool incstack__machine_is_promised(const object *frame, const object *caller,
				   const struct incstack_top *top)
{
	if (top->flags & INCSTACK_TOP_CALLER_STAYS)
		return begins_at(frame, top) && !(frame->flags & OBJECT_DECODE_NOW);
	return begins_at(caller, top);
}

bool incstack__machine_may_have_called(const object *frame, const struct incstack_top *top)
{
	return frame->address > (top->slot ? top->slot : top->sp);
}

uintptr_t incstack__machine_open_bytes(const stack *s)
{
	return s->newest ? s->high - s->newest->address : 0;
}

/* The room for all frames that the stack can have was reserved before. */
int incstack__machine_more_room(stack *s)
{
	(void)s;
	return INCSTACK_EROOM;
}

static bool ordered(const stack *s, size_t most)
{
	uintptr_t last = 0;
	for (const object *o = s->newest; o && most--; o = o->parent) {
		if (o->address < last || o->address <= s->low || o->address > s->high)
			return false;
		last = o->address;
	}
	return true;
}

static bool cells_lead_back(const stack *s, size_t most)
{
	for (const object *o = s->newest; o && most--; o = o->parent)
		if (o->flags & OBJECT_BARRIER &&
		    thunk_cell(thunk_address(o->flags >> OBJECT_SHIFT))->stack != s)
			return false;
	return true;
}

int incstack__machine_broken(const stack *s, size_t most)
{
	if (!ordered(s, most))
		return 1;
	return cells_lead_back(s, most) ? 0 : 4;
}

const struct incstack__stack_kind incstack__kind_machine = {
	.modes =
		1u << INCSTACK_MODE_PATCH | 1u << INCSTACK_MODE_VALIDATE | 1u << INCSTACK_MODE_FULL,
	.left_behind = left_behind,
	INCSTACK__MACHINE_FUNCTIONS,
};
