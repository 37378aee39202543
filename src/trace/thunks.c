/* SPDX-License-Identifier: MIT
 *
 * The thunks of all pools that no stack has: hands them out, takes them back, and makes more
 * when few are left. It also finds the stack of a barrier by its thunk.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "shared.h"
#include "thunks.h"

struct barrier incstack__barriers[INCSTACK__THUNK_COUNT];
/* Thunks that were given back are a list, which take_returned() prefers. Thunks that were never
 * used are handed out in order from 1 on. The head of the list has the number of the first
 * thunk in its low half. The high half is a tag that changes with each update, against the ABA
 * problem. The release in give_back pairs with the acquires in take_returned, which read `next`. */
static _Atomic uint64_t returned;
static atomic_uint fresh = 1;                        /* thunk 0 means none */
static atomic_uint idle = INCSTACK__THUNK_COUNT - 1; /* thunks that no stack has */

/* More thunks are made when fewer than these are idle. */
enum { LOW_WATER = INCSTACK__THUNK_COUNT / 4 };

int incstack__pool_open(void)
{
	static atomic_int state; /* the acquire pairs with the release below */
	if (atomic_load_explicit(&state, memory_order_acquire))
		return 0;
	if (incstack__system_call(SYS_mprotect, incstack__thunk_cells, INCSTACK__POOL_BYTES,
				  PROT_READ | PROT_WRITE))
		return INCSTACK_ENOMEM;
	atomic_store_explicit(&state, 1, memory_order_release);
	return 0;
}

static atomic_flag generating = ATOMIC_FLAG_INIT;

/* In the child of fork no other thread exists. A pool that was half made is made again. */
void incstack__pool_forked(void)
{
	atomic_flag_clear_explicit(&generating, memory_order_relaxed);
}

static _Atomic bool closed;

void incstack__pools_close(void)
{
	atomic_store_explicit(&closed, true, memory_order_relaxed);
}

bool incstack__pools_needed(void)
{
	return atomic_load_explicit(&idle, memory_order_relaxed) < LOW_WATER;
}

/* Makes thunks when few are left, for a stack whose mode needs them. Called outside samples and
 * returns. Only one thread makes them; others do not wait but use the thunks that exist. */
void incstack__pools_add(stack *s)
{
	if (!has_barriers(s) || !incstack__pools_needed() ||
	    atomic_flag_test_and_set_explicit(&generating, memory_order_acquire))
		return;
	if (incstack__pool_generate(s->runtime)) {
		s->stats.pools_refused++;
	} else {
		s->stats.pools++;
		atomic_fetch_add_explicit(&idle, INCSTACK__THUNK_COUNT, memory_order_relaxed);
	}
	atomic_flag_clear_explicit(&generating, memory_order_release);
}

void incstack__pool_reserve(stack *s)
{
	if (!atomic_load_explicit(&closed, memory_order_relaxed))
		incstack__pools_add(s);
}

static uint32_t take_fresh(void)
{
	uintptr_t pools = 1 + atomic_load_explicit(&incstack__pools.bytes, memory_order_acquire) /
				      INCSTACK__POOL_STRIDE;
	uint32_t number = atomic_load_explicit(&fresh, memory_order_relaxed);
	while (number < pools * INCSTACK__THUNK_COUNT)
		if (atomic_compare_exchange_weak_explicit(&fresh, &number, number + 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return number;
	return 0;
}

static uint32_t take_returned(void)
{
	uint64_t top = atomic_load_explicit(&returned, memory_order_acquire);
	while ((uint32_t)top) {
		uint64_t next = ((top >> 32) + 1) << 32 | barrier_of((uint32_t)top)->next;
		if (atomic_compare_exchange_weak_explicit(
			    &returned, &top, next, memory_order_acquire, memory_order_acquire))
			return (uint32_t)top;
	}
	return 0;
}

static void give_back(uint32_t number)
{
	uint64_t top = atomic_load_explicit(&returned, memory_order_relaxed), new;
	thunk_cell(thunk_address(number))->stack = NULL;
	do {
		barrier_of(number)->next = (uint32_t)top;
		new = ((top >> 32) + 1) << 32 | number;
	} while (!atomic_compare_exchange_weak_explicit(&returned, &top, new, memory_order_release,
							memory_order_relaxed));
	atomic_fetch_add_explicit(&idle, 1, memory_order_relaxed);
}

/* Returns a thunk for s, or 0 if there is none or if the runtime's limit is reached. */
uint32_t incstack__thunk_take(stack *s)
{
	runtime *rt = s->runtime;
	uint32_t limit = rt->options.thunk_limit;
	if (limit && atomic_load_explicit(&rt->thunks, memory_order_relaxed) >= limit)
		return 0;
	uint32_t number = take_returned();
	if (!number)
		number = take_fresh();
	if (!number)
		return 0;
	atomic_fetch_add_explicit(&rt->thunks, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&idle, 1, memory_order_relaxed);
	if (number < s->thunks.low || !s->thunks.low)
		s->thunks.low = number;
	if (number > s->thunks.high)
		s->thunks.high = number;
	return number;
}

/* Gives a thunk back to the pool. The caller knows that no return can come through it. */
void incstack__thunk_give_back(stack *s, uint32_t number)
{
	give_back(number);
	atomic_fetch_sub_explicit(&s->runtime->thunks, 1, memory_order_relaxed);
}

/* Whether thunks are short, so that the retired thunks of stacks should be reclaimed. */
bool incstack__thunks_short(const runtime *rt)
{
	uint32_t limit = rt->options.thunk_limit;
	return atomic_load_explicit(&idle, memory_order_relaxed) < LOW_WATER ||
	       (limit && atomic_load_explicit(&rt->thunks, memory_order_relaxed) >= limit);
}

/* How many threads are reading a stack that may belong to another thread, which may free it. The
 * sequentially consistent increment and decrement in owned() pair with the fence and the loads
 * in incstack__barriers_watched(). */
static atomic_uint watchers;

static stack *owned(uint32_t number)
{
	stack *s = NULL;
	atomic_fetch_add(&watchers, 1);
	if (__atomic_load_n(&barrier_of(number)->object, __ATOMIC_SEQ_CST))
		s = thunk_cell(thunk_address(number))->stack;
	if (s && s->owner != thread_self())
		s = NULL;
	atomic_fetch_sub(&watchers, 1);
	return s;
}

/* Finds the next live barrier on a stack of the calling thread, in the order of thunk numbers,
 * beginning after *number. Sets *number to its thunk. Returns its stack, or null if there is
 * none. */
stack *incstack__barrier_of_thread(uint32_t *number)
{
	uint32_t count = atomic_load_explicit(&fresh, memory_order_acquire);
	while (++*number < count) {
		stack *s = owned(*number);
		if (s)
			return s;
	}
	return NULL;
}

/* Waits until no thread reads the stack, which has no more barriers and is about to be freed. The
 * wait is bounded because a watcher may be stopped, or may not exist after fork. */
void incstack__barriers_watched(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < 1u << 20 && atomic_load(&watchers); i++)
		machine_pause();
}
