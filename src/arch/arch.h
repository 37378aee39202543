/* SPDX-License-Identifier: MIT
 *
 * What an architecture must provide, and what follows from it for the rest of the core. x86-64 on
 * Linux is the only one. Another one needs a folder like x86_64/ with:
 * - layout.h: the constants below, and the distances between thunks, cells and pools;
 * - machine.h: stack_pointer(), a pause for loops that wait;
 * - the trampoline (thunks.S): a pool of thunks and their cells, which restores a return slot and
 *   calls incstack__returned; landing pads for unwinders; incstack__call_saved;
 * - the functions that are declared below under "by the architecture".
 * Embedders, native/ and the recorder read more of the machine, each in its own files.
 */
#ifndef INCSTACK__ARCH_H
#define INCSTACK__ARCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include <incstack/incstack.h>

#if defined(__x86_64__)
#include "x86_64/layout.h"
#include "x86_64/machine.h"
#else
#error "libincstack knows only x86-64"
#endif

/* What a thunk reads: the address to resume at, and the stack that the thunk belongs to. */
struct incstack__cell {
	uintptr_t resume;
	struct incstack_stack *stack;
};

_Static_assert(offsetof(struct incstack__cell, resume) == INCSTACK__CELL_RESUME, "see layout.h");
_Static_assert(offsetof(struct incstack__cell, stack) == INCSTACK__CELL_STACK, "see layout.h");
_Static_assert(sizeof(struct incstack__cell) == INCSTACK__THUNK_SIZE, "see layout.h");

/* A frame during a walk. */
struct cursor {
	uintptr_t pc;
	uintptr_t sp;
	uintptr_t fp;
	bool exact;
	bool signal;
};

/* ---- by the architecture ---------------------------------------------------------- */

extern const char incstack__thunk_entry[], incstack__thunk_entry_1[], incstack__thunk_entry_2[],
	incstack__thunk_entry_3[], incstack__thunk_entry_4[], incstack__thunk_entry_5[];
extern const char incstack__thunk_landing[];
extern const char incstack__thunk_pool[], incstack__thunks[];
extern struct incstack__cell incstack__thunk_cells[INCSTACK__THUNK_COUNT];
/* The target of each landing pad: the _Unwind_Resume of one unwinder. */
extern _Atomic uintptr_t incstack__landing_resume[INCSTACK__LANDINGS];

/* Calls the function with all registers saved, the vector registers in an area of `bytes`. */
void incstack__call_saved(void (*function)(void *), void *argument, size_t bytes);
size_t incstack__xsave_bytes(void);
bool incstack__entry_state(const struct cursor *at, struct cursor *caller);
uintptr_t incstack__entry_reads(const struct cursor *at);
int incstack__pool_generate(const struct incstack_runtime *rt);

/* And, for other parts of the project too (trace/shared.h): incstack__system_call, incstack__page_readable,
 * incstack__shadow_stack_on, incstack__thunk_contains and incstack__trampoline_contains. */

/* ---- what it calls: the trampoline and unwinders enter the core here (barrier_hit.c) --- */

uintptr_t incstack__returned(struct incstack__cell *cell, uintptr_t fp, uintptr_t old_busy);
struct _Unwind_Context;
int incstack__thunk_personality(int version, int actions, uint64_t class, void *exception,
				struct _Unwind_Context *context);

/* ---- thunks and their cells --------------------------------------------------------- */

/* The pools made at run time lie in [base, base + bytes), one per INCSTACK__POOL_STRIDE. */
struct incstack__pools {
	_Atomic uintptr_t base, bytes;
};
extern struct incstack__pools incstack__pools;
/* Whether a word points into the pools made at run time. *offset is relative to their base. */
static inline bool in_later_pool(uintptr_t word, uintptr_t *offset)
{
	/* acquire: pairs with the release in pool.c, which stores base before bytes. */
	uintptr_t bytes = atomic_load_explicit(&incstack__pools.bytes, memory_order_acquire);
	*offset = word - atomic_load_explicit(&incstack__pools.base, memory_order_relaxed);
	return __builtin_expect(*offset < bytes, 0);
}
static inline bool is_thunk(uintptr_t word)
{
	uintptr_t offset;
	if (word - (uintptr_t)incstack__thunks < INCSTACK__POOL_BYTES)
		return true;
	return in_later_pool(word, &offset) &&
	       offset % INCSTACK__POOL_STRIDE - INCSTACK__ENTRY_BYTES < INCSTACK__POOL_BYTES;
}
/* The number of the thunk at `word`, for which is_thunk() must hold. */
static inline uint32_t thunk_number(uintptr_t word)
{
	uintptr_t offset;
	if (!in_later_pool(word, &offset))
		return (uint32_t)((word - (uintptr_t)incstack__thunks) / INCSTACK__THUNK_SIZE);
	return (uint32_t)(offset / INCSTACK__POOL_STRIDE + 1) * INCSTACK__THUNK_COUNT +
	       (uint32_t)(offset % INCSTACK__POOL_STRIDE - INCSTACK__ENTRY_BYTES) /
		       INCSTACK__THUNK_SIZE;
}
static inline struct incstack__cell *thunk_cell(uintptr_t word)
{
	uintptr_t thunk = word & ~(uintptr_t)(INCSTACK__THUNK_SIZE - 1);
	return (struct incstack__cell *)(thunk + INCSTACK__POOL_BYTES);
}
static inline uintptr_t thunk_address(uint32_t number)
{
	uintptr_t thunks = (uintptr_t)incstack__thunks, pool = number / INCSTACK__THUNK_COUNT;
	if (__builtin_expect(pool != 0, 0))
		thunks = atomic_load_explicit(&incstack__pools.base, memory_order_relaxed) +
			 (pool - 1) * INCSTACK__POOL_STRIDE + INCSTACK__ENTRY_BYTES;
	return thunks + (uintptr_t)(number % INCSTACK__THUNK_COUNT) * INCSTACK__THUNK_SIZE;
}

/* Which thread is calling. */
static inline uintptr_t thread_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

#endif
