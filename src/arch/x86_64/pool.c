/* SPDX-License-Identifier: MIT
 *
 * Pools of thunks that are made at run time, when those in the text run short:
 * copies of the first, entry and all, each at a constant distance from its cells.
 * All lie in one reserved range, so that any word is known as a thunk or not by
 * two comparisons. A pool lives as long as the process: a slot that nobody
 * restored, or an unwinder, may lead to its thunks at any time.
 */
#include <string.h>
#include <sys/mman.h>

#include "../../barrier.h"
#include "unwind_info.h"

enum { POOLS = 64, STRIDE = INCSTACK__POOL_STRIDE };
enum { CODE = INCSTACK__ENTRY_BYTES + INCSTACK__POOL_BYTES };
/* The unwind information lies behind the cells and the barriers. */
enum { INFO = STRIDE - 2 * INCSTACK__UNWIND_INFO_BYTES - 256 };

_Static_assert(CODE + INCSTACK__POOL_BYTES + INCSTACK__THUNK_COUNT * sizeof(struct barrier) < INFO,
	       "a pool does not fit in its stride");

/* No address of a program lies at 2^62, so nothing is a thunk of an empty range. */
struct incstack__pools incstack__pools = {.base = (uintptr_t)1 << 62};

/* libgcc's registration of unwind information, with storage for its node: weak,
 * because the core links no unwinder. The other one allocates, and does not look. */
extern void __register_frame_info(const void *begin, void *node) __attribute__((weak));
extern const void *_Unwind_Find_FDE(const void *code, void *bases[3]) __attribute__((weak));
extern const char incstack__thunk_called[];

/* Registered is what the unwinder finds: LLVM's has the same function, which does nothing. */
static bool register_info(const runtime *rt, const uint8_t *pool, uint8_t *info, size_t bytes)
{
	void *bases[3];
	if (rt->embedder.register_unwind_info)
		return rt->embedder.register_unwind_info(rt->context, info, bytes) >= 0;
	if (!__register_frame_info || !_Unwind_Find_FDE)
		return false;
	__register_frame_info(info, info + 2 * INCSTACK__UNWIND_INFO_BYTES);
	return _Unwind_Find_FDE(pool + INCSTACK__ENTRY_BYTES, bases) != NULL;
}

/* The copy calls what the original calls, which may be too far for a direct call:
 * through a pointer in the padding behind the entry. */
static void redirect_call(uint8_t *pool)
{
	enum { POINTER = 512 };
	static const uint8_t indirect_call[] = {0xff, 0x15};
	uint8_t *after = pool + (incstack__thunk_called - incstack__thunk_entry);
	uintptr_t target = (uintptr_t)incstack__returned;
	int32_t distance = (int32_t)(pool + POINTER - after);
	memcpy(after - sizeof(distance), &distance, sizeof(distance));
	memcpy(after - sizeof(distance) - sizeof(indirect_call), indirect_call,
	       sizeof(indirect_call));
	memcpy(pool + POINTER, &target, sizeof(target));
}

/* Describes the entry and the thunks; their paddings belong to the latter. */
static size_t describe(uint8_t *pool)
{
	uintptr_t thunks = (uintptr_t)(incstack__thunk_pool - incstack__thunk_entry);
	uintptr_t personality = (uintptr_t)incstack__thunk_personality;
	uint8_t *info = pool + INFO;
	uint8_t *end = incstack__unwind_info_copy(info, (uintptr_t)incstack__thunk_entry, 256,
						  (uintptr_t)pool, personality);
	if (end)
		end = incstack__unwind_info_copy(end, (uintptr_t)incstack__thunk_pool,
						 CODE - thunks, (uintptr_t)pool + thunks,
						 personality);
	return end ? (size_t)(end - info) + sizeof(uint32_t) : 0; /* and the zero word */
}

/* Makes the pool at `pool`; never writable and executable at once. */
static bool make_pool(const runtime *rt, uint8_t *pool)
{
	if (mprotect(pool, STRIDE, PROT_READ | PROT_WRITE))
		return false;
	memcpy(pool, incstack__thunk_entry, CODE);
	redirect_call(pool);
	size_t bytes = describe(pool);
	return bytes && !mprotect(pool, CODE, PROT_READ | PROT_EXEC) &&
	       register_info(rt, pool, pool + INFO, bytes);
}

static uint8_t *reserved_range(void)
{
	static uint8_t *range;
	if (!range) {
		void *memory = mmap(NULL, (size_t)POOLS * STRIDE, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		range = memory == MAP_FAILED ? NULL : memory;
	}
	return range;
}

/* Makes one more pool: 0, or a negative error if the system or the embedder
 * refuses, or if there are as many as there can be. By one thread at a time. */
int incstack__pool_generate(const runtime *rt)
{
	static bool refused; /* they would refuse again */
	uintptr_t bytes = atomic_load_explicit(&incstack__pools.bytes, memory_order_relaxed);
	uint8_t *range = reserved_range();
	if (refused || !range || bytes == (uintptr_t)POOLS * STRIDE)
		return INCSTACK_ENOMEM;
	if (!make_pool(rt, range + bytes)) {
		mprotect(range + bytes, STRIDE, PROT_NONE);
		refused = true;
		return INCSTACK_ENOMEM;
	}
	atomic_store_explicit(&incstack__pools.base, (uintptr_t)range, memory_order_relaxed);
	/* pairs with the acquire in is_thunk and in barrier.c */
	atomic_store_explicit(&incstack__pools.bytes, bytes + STRIDE, memory_order_release);
	return 0;
}
