/* SPDX-License-Identifier: MIT
 *
 * Pools of thunks that are made at run time when those in the text run short. Each is a copy
 * of the first, including the entry, at a constant distance from its cells. All lie in one
 * reserved range, so two comparisons tell whether a word is a thunk. A pool lives as long as
 * the process, because a slot that nobody restored, or an unwinder, may lead to its thunks at
 * any time.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/arch.h"
#include "trace/runtime.h"
#include "trace/shared.h"
#include "unwind_info.h"

/* The number of a thunk has 18 bits (object.h). */
enum { POOLS = 63, STRIDE = INCSTACK__POOL_STRIDE };
enum { CODE = INCSTACK__ENTRY_BYTES + INCSTACK__POOL_BYTES };
/* The offset of the unwind information, which follows the cells and the barrier records. */
enum { INFO = STRIDE - 2 * INCSTACK__UNWIND_INFO_BYTES - 256 };

_Static_assert(CODE + INCSTACK__POOL_BYTES + INCSTACK__THUNK_COUNT * INCSTACK__RECORD_BYTES < INFO,
	       "a pool does not fit in its stride");

/* While there is no pool, the range is empty and begins at 2^62, where no program has memory. */
struct incstack__pools incstack__pools = {.base = (uintptr_t)1 << 62};

/* libgcc's registration of unwind information, with storage for its node, which the caller
 * provides. __register_frame would allocate the node without checking whether that succeeds.
 * The references are weak because the core links no unwinder. */
extern void __register_frame_info(const void *begin, void *node) __attribute__((weak));
extern const void *_Unwind_Find_FDE(const void *code, void *bases[3]) __attribute__((weak));
extern const char incstack__thunk_called[];

/* Registers the unwind information of a pool. The registration counts as successful only if the
 * unwinder then finds it: LLVM's libunwind has the same function, but it does nothing. */
static bool register_info(const runtime *rt, const uint8_t *pool, uint8_t *info, size_t bytes)
{
	void *bases[3];
	if (rt->embedder.code.register_unwind_info)
		return rt->embedder.code.register_unwind_info(rt->context, info, bytes) >= 0;
	if (!__register_frame_info || !_Unwind_Find_FDE)
		return false;
	__register_frame_info(info, info + 2 * INCSTACK__UNWIND_INFO_BYTES);
	return _Unwind_Find_FDE(pool + INCSTACK__ENTRY_BYTES, bases) != NULL;
}

/* Makes the copy call what the original calls. The function may be too far away for a direct
 * call, so the call goes through a pointer in the padding after the entry. */
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

/* Writes the unwind information of the entry and of the thunks. The description of the thunks
 * includes the padding. Returns its size, or 0 if it could not be copied. */
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
	return end ? (size_t)(end - info) + sizeof(uint32_t) : 0; /* with the final zero word */
}

static long protect(void *memory, size_t bytes, long access)
{
	return incstack__system_call(SYS_mprotect, memory, bytes, access);
}

/* Makes the pool at `pool`. Its memory is never writable and executable at the same time. */
static bool make_pool(const runtime *rt, uint8_t *pool)
{
	if (protect(pool, STRIDE, PROT_READ | PROT_WRITE))
		return false;
	memcpy(pool, incstack__thunk_entry, CODE);
	redirect_call(pool);
	size_t bytes = describe(pool);
	return bytes && !protect(pool, CODE, PROT_READ | PROT_EXEC) &&
	       register_info(rt, pool, pool + INFO, bytes);
}

static uint8_t *reserved_range(void)
{
	static uint8_t *range;
	if (!range) {
		long memory = incstack__system_call(
			SYS_mmap, NULL, (size_t)POOLS * STRIDE, (long)PROT_NONE,
			(long)(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE), -1L, 0L);
		range = memory < 0 ? NULL : (uint8_t *)memory;
	}
	return range;
}

/* Makes one more pool. Returns 0, or a negative error if the system or the embedder refuses or
 * if the maximum is reached. Only one thread at a time may call it. */
int incstack__pool_generate(const runtime *rt)
{
	static bool refused; /* once refused, a pool would be refused again */
	uintptr_t bytes = atomic_load_explicit(&incstack__pools.bytes, memory_order_relaxed);
	uint8_t *range = reserved_range();
	if (refused || !range || bytes == (uintptr_t)POOLS * STRIDE)
		return INCSTACK_ENOMEM;
	if (!make_pool(rt, range + bytes)) {
		protect(range + bytes, STRIDE, PROT_NONE);
		refused = true;
		return INCSTACK_ENOMEM;
	}
	atomic_store_explicit(&incstack__pools.base, (uintptr_t)range, memory_order_relaxed);
	/* release: pairs with the acquires in in_later_pool, thunks.c and barrier.c. */
	atomic_store_explicit(&incstack__pools.bytes, bytes + STRIDE, memory_order_release);
	return 0;
}
