/* SPDX-License-Identifier: MIT
 *
 * Retired thunks: when they can be used again (I17 to I23), and what becomes of them when the
 * state of their stack ends. Most had barriers that vanished because a jump left their frames
 * unannounced. The others were hit, and an unwinder or the trampoline may still read their cells.
 */
#include "barrier.h"

/* Called for a return through a thunk without a live barrier. If the thunk was retired because its
 * barrier had vanished, its frame still exists, so the stack was copied. */
void incstack__barrier_revived(stack *s, const struct incstack__cell *cell)
{
	if (barrier_of(thunk_number((uintptr_t)cell - INCSTACK__POOL_BYTES))->retired ==
	    RETIRED_VANISHED)
		incstack__copied_note(s);
}

/* Makes sure that no return can come through the retired thunk, provided that nobody copies
 * stacks. Either its slot is dead memory below the running frame and its red zone, or it holds
 * another word by now, or it is restored here. */
static void give_back_slot(uint32_t number, uintptr_t sp)
{
	enum { RED_ZONE = 128 };
	if (slot_holds_thunk(number, sp - RED_ZONE))
		store((uintptr_t *)barrier_of(number)->fp,
		      thunk_cell(thunk_address(number))->resume);
}

/* Whether an unwinder or the trampoline may still read the cell. While the trampoline serves the
 * return, the slot first holds the thunk, then the offset of the cell, then the resume address
 * (thunks.S). */
static bool may_be_in_use(uint32_t number, uintptr_t sp)
{
	const struct barrier *b = barrier_of(number);
	const uintptr_t offset = (uintptr_t)(number % INCSTACK__THUNK_COUNT) * INCSTACK__THUNK_SIZE;
	if (b->retired != RETIRED_IN_USE || b->fp < sp)
		return false;
	const uintptr_t word = content((const uintptr_t *)b->fp);
	return word == thunk_address(number) || word == offset ||
	       word == thunk_cell(thunk_address(number))->resume;
}

static void reclaim(stack *s, bool ends)
{
	uintptr_t sp = inside(s, stack_pointer()) ? stack_pointer() : s->low;
	uint32_t kept = 0;
	while (s->thunks.retired) {
		uint32_t number = s->thunks.retired;
		s->thunks.retired = barrier_of(number)->next;
		if (!ends && may_be_in_use(number, sp)) {
			barrier_of(number)->next = kept;
			kept = number;
			continue;
		}
		give_back_slot(number, sp);
		incstack__thunk_give_back(s, number);
	}
	s->thunks.retired = kept;
}

static void move_slots(uint32_t number, uintptr_t delta)
{
	for (; number; number = barrier_of(number)->next)
		barrier_of(number)->fp += barrier_of(number)->fp ? delta : 0;
}

/* The stack was moved, and with it the slots of thunks that were hit or are retired. */
void incstack__barriers_moved(stack *s, uintptr_t delta)
{
	move_slots(s->thunks.retired, delta);
	move_slots(s->limbo, delta);
}

/* Gives retired thunks back to the pool when thunks run short. Only the owner may do that,
 * while it runs on the stack. It is not done once a return has come through a retired thunk,
 * because slots that are not on the stack may then have copies elsewhere. */
void incstack__barriers_reclaim(stack *s)
{
	if (s->thunks.retired && inside(s, stack_pointer()) && incstack__thunks_short(s->runtime) &&
	    !atomic_load_explicit(&s->runtime->revived, memory_order_relaxed))
		reclaim(s, false);
}

/* Gives the thunks that the stack does not use back to the pool. */
void incstack__barriers_give_spare(stack *s)
{
	while (s->thunks.spare) {
		uint32_t number = s->thunks.spare;
		s->thunks.spare = barrier_of(number)->next;
		incstack__thunk_give_back(s, number);
	}
}

/* The owner of the retired thunks of destroyed stacks: copies of such a stack may still return
 * through them, and the trampoline then needs a stack to read. */
static stack nobody;

/* Releases the thunks of s, whose state ends. */
void incstack__barriers_close(stack *s)
{
	incstack__limbo_empty(s);
	if (!stacks_are_copied(s->runtime))
		reclaim(s, true);
	for (uint32_t n = s->thunks.retired; n; n = barrier_of(n)->next)
		thunk_cell(thunk_address(n))->stack = &nobody;
	incstack__barriers_give_spare(s);
}
