/* SPDX-License-Identifier: MIT
 *
 * Return barriers: plants and lifts them, reads and writes return slots.
 */
#ifndef INCSTACK__BARRIER_H
#define INCSTACK__BARRIER_H

#include "kind.h"
#include "thunks.h"

/* Writes a return slot in another function's frame. Sanitizers would report the access. */
__attribute__((no_sanitize("address", "thread"))) static inline void store(uintptr_t *slot,
									   uintptr_t word)
{
	*(volatile uintptr_t *)slot = word;
}

__attribute__((no_sanitize("address", "thread"))) static inline uintptr_t
content(const uintptr_t *slot)
{
	return *(const volatile uintptr_t *)slot;
}

/* Whether the slot of a thunk that was hit or is retired is not below `lowest` and still holds the
 * thunk. */
static inline bool slot_holds_thunk(uint32_t number, uintptr_t lowest)
{
	const uintptr_t *slot = (const uintptr_t *)barrier_of(number)->fp;
	return (uintptr_t)slot >= lowest && content(slot) == thunk_address(number);
}

/* Records that the thunk belongs to a barrier of o. */
static inline void barrier_record(stack *s, object *o, uintptr_t fp, uint32_t number)
{
	*barrier_of(number) = (struct barrier){o, fp, 0, 0};
	o->flags = (o->flags & OBJECT_FLAGS) | OBJECT_BARRIER | number << OBJECT_SHIFT;
	s->stats.planted++;
}

uint32_t incstack__barrier_take(stack *s);
void incstack__barrier_give_back(stack *s, uint32_t number);
bool incstack__barrier_plant(stack *s, object *o, uintptr_t fp);
void incstack__barrier_reuse(stack *s, object *o, object *next, uintptr_t fp);
void incstack__barrier_free(stack *s, object *o);
void incstack__barrier_free_later(stack *s, object *o, const uintptr_t *slot);
void incstack__barrier_served(stack *s, object *o);
void incstack__barriers_discard(stack *s, bool restore);
bool incstack__machine_is_live(const stack *s, const object *o);
void incstack__machine_lift(stack *s, object *o, bool certain);
void incstack__machine_vanished(stack *s, object *o);
uintptr_t incstack__barrier_fp(const object *o);
void incstack__barrier_move(object *from, object *to);
object *incstack__known_pop(stack *s, object *o);
void incstack__barrier_shift_fp(const object *o, uintptr_t low, uintptr_t high, uintptr_t delta);
void incstack__limbo_release(stack *s, uintptr_t sp);
void incstack__limbo_empty(stack *s);
object *incstack__barrier_object(const struct incstack__cell *cell);
void incstack__barrier_uncover(stack *s, uint32_t number);

/* retired.c */
void incstack__barrier_revived(stack *s, const struct incstack__cell *cell);
void incstack__barriers_reclaim(stack *s);
void incstack__barriers_give_spare(stack *s);
void incstack__barriers_close(stack *s);
void incstack__barriers_moved(stack *s, uintptr_t delta);

/* copied.c */
void incstack__copied_note(stack *s);
/* Whether the runtime is known to copy stacks, so that nothing more may be patched. Fewer returns
 * through retired thunks may come from a coroutine that uses a part of the thread's own stack. */
static inline bool stacks_are_copied(const runtime *rt)
{
	enum { REVIVED_MOST = 8 };
	return atomic_load_explicit(&rt->revived, memory_order_relaxed) >= REVIVED_MOST;
}

#endif
