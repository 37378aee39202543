/* SPDX-License-Identifier: MIT
 *
 * What the files about thunks share: the records of barriers by the number of their thunk,
 * and the words of stacks that they replace.
 */
#ifndef INCSTACK__BARRIER_H
#define INCSTACK__BARRIER_H

#include "internal.h"

extern struct barrier incstack__barriers[INCSTACK__THUNK_COUNT]; /* of the first pool */

/* A later pool holds its own, behind its cells. */
static inline struct barrier *barrier_of(uint32_t number)
{
	uint32_t index = number % INCSTACK__THUNK_COUNT;
	if (__builtin_expect(number < INCSTACK__THUNK_COUNT, 1))
		return &incstack__barriers[index];
	return (struct barrier *)thunk_cell(thunk_address(number - index) + INCSTACK__POOL_BYTES) +
	       index;
}

/* The write into a foreign frame: sanitizers know nothing of it. */
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

/* From now on a pool is made only by incstack__pools_add: libgcc, which has to be told, might
 * wait for a lock. */
void incstack__pools_close(void);
bool incstack__pools_needed(void);
void incstack__pools_add(stack *s);

bool incstack__stack_is_patched(const struct incstack_stack *s);
/* In the child of fork. */
void incstack__pool_forked(void);
void incstack__arena_forked(runtime *rt);

#endif
