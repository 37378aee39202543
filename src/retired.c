/* SPDX-License-Identifier: MIT
 *
 * Retired thunks: their barriers vanished unannounced, because frames were left by a jump
 * that nobody announced. When they can be used again (I4), and what becomes of the thunks
 * of a stack whose state ends.
 */
#include "barrier.h"

/* A return came through a retired thunk: its frame had not gone. */
void incstack__barrier_revived(stack *s, const struct incstack__cell *cell)
{
	if (barrier_of(thunk_number((uintptr_t)cell - INCSTACK__POOL_BYTES))->retired)
		incstack__copied_note(s);
}

/* Makes sure that no return comes through the retired thunk, where nobody copies stacks:
 * its slot is dead memory below the running frame and its red zone, or holds something
 * else by now, or is given back. */
static void give_back_slot(uint32_t number, uintptr_t sp)
{
	enum { RED_ZONE = 128 };
	uintptr_t *slot = (uintptr_t *)barrier_of(number)->fp;
	if ((uintptr_t)slot >= sp - RED_ZONE && content(slot) == thunk_address(number))
		store(slot, thunk_cell(thunk_address(number))->resume);
}

static void reclaim(stack *s)
{
	uintptr_t sp = stack_pointer();
	while (s->retired) {
		uint32_t number = s->retired;
		s->retired = barrier_of(number)->next;
		give_back_slot(number, inside(s, sp) ? sp : s->low);
		incstack__thunk_give_back(s, number);
	}
}

/* The slots of retired thunks lie elsewhere now. */
void incstack__barriers_moved(stack *s, uintptr_t delta)
{
	for (uint32_t n = s->retired; n; n = barrier_of(n)->next)
		barrier_of(n)->fp += delta;
}

/* Gives retired thunks back to the pool when few are left: by the owner, running on the
 * stack. Not once a return came through one of them: what is not on the stack may then
 * be a copy elsewhere. */
void incstack__barriers_reclaim(stack *s)
{
	if (s->retired && inside(s, stack_pointer()) && incstack__thunks_short(s->runtime) &&
	    !atomic_load_explicit(&s->runtime->revived, memory_order_relaxed))
		reclaim(s);
}

/* What thunks that copies of a stack may lead to belong to when its state has ended. */
static stack nobody;

/* The state of s ends. */
void incstack__barriers_end(stack *s)
{
	if (!incstack__copied(s->runtime))
		reclaim(s);
	for (uint32_t n = s->retired; n; n = barrier_of(n)->next)
		thunk_cell(thunk_address(n))->stack = &nobody;
	incstack__limbo_empty(s);
	while (s->spare) {
		uint32_t number = s->spare;
		s->spare = barrier_of(number)->next;
		incstack__thunk_give_back(s, number);
	}
}
