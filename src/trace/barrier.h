/* SPDX-License-Identifier: MIT
 *
 * Shared by the files that handle thunks: the records of barriers, indexed by thunk number,
 * and the functions that read and write return slots.
 */
#ifndef INCSTACK__BARRIER_H
#define INCSTACK__BARRIER_H

#include "internal.h"

extern struct barrier incstack__barriers[INCSTACK__THUNK_COUNT]; /* for the first pool */

/* The record of a thunk. Each later pool holds its records itself, after its cells. */
static inline struct barrier *barrier_of(uint32_t number)
{
	uint32_t index = number % INCSTACK__THUNK_COUNT;
	if (__builtin_expect(number < INCSTACK__THUNK_COUNT, 1))
		return &incstack__barriers[index];
	return (struct barrier *)thunk_cell(thunk_address(number - index) + INCSTACK__POOL_BYTES) +
	       index;
}

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

/* thunks.c */
uint32_t incstack__thunk_take(stack *s);
void incstack__thunk_give_back(stack *s, uint32_t number);
bool incstack__thunks_short(const runtime *rt);

/* From now on only incstack__pools_add makes pools. A new pool must be registered with
 * libgcc, which might wait for a lock, so the caller chooses the moment. */
void incstack__pools_close(void);
bool incstack__pools_needed(void);
void incstack__pools_add(stack *s);

bool incstack__stack_is_patched(const struct incstack_stack *s);
/* Both are to be called in the child of fork. */
void incstack__pool_forked(void);
void incstack__arena_forked(runtime *rt);

#endif
