/* SPDX-License-Identifier: MIT
 *
 * The thunks of all pools that no stack has, and the record of a barrier, which is indexed by the
 * number of its thunk.
 */
#ifndef INCSTACK__THUNKS_H
#define INCSTACK__THUNKS_H

#include "shared.h"
#include "stack.h"

/* Why a thunk is retired. */
enum {
	NOT_RETIRED,
	RETIRED_VANISHED, /* its barrier vanished unannounced */
	RETIRED_IN_USE, /* its barrier was hit, and an unwinder or the trampoline may read its cell */
};

/* The record of a barrier beside the cell, indexed by the number of its thunk. */
struct barrier {
	object *object; /* the frame that control returns into; null: the barrier is not live */
	uintptr_t fp;   /* the frame pointer of that frame; if it was hit or is retired, the slot */
	uint32_t next;  /* the next thunk in a list of its stack */
	uint32_t retired; /* whether the thunk is in the list of retired thunks, and why */
};
_Static_assert(sizeof(struct barrier) == INCSTACK__RECORD_BYTES, "see layout.h");

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

int incstack__pool_open(void);
void incstack__pool_reserve(stack *s);
void incstack__pool_forked(void); /* in the child of fork */
uint32_t incstack__thunk_take(stack *s);
void incstack__thunk_give_back(stack *s, uint32_t number);
bool incstack__thunks_short(const runtime *rt);
stack *incstack__barrier_of_thread(uint32_t *number);
void incstack__barriers_watched(void);

#endif
