/* SPDX-License-Identifier: MIT
 *
 * Return barriers: the thunks that are in use, and the words of the stack that
 * they replace. The only file that writes to a stack.
 *
 * Order of writes: the cell is filled before the slot shows the thunk, and a
 * thunk is reused only when no slot and no unwinder can lead to it (I4).
 */
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

static struct barrier barriers[INCSTACK__THUNK_COUNT]; /* of the first pool */
/* Thunks 1.. are handed out in turn, after those of the list of returned ones: number
 * in the low half, a tag against reuse between load and exchange in the high. */
static _Atomic uint64_t returned;
static atomic_uint fresh = 1;                        /* thunk 0 means none */
static atomic_uint idle = INCSTACK__THUNK_COUNT - 1; /* in neither hand of a stack */
#define NEVER UINT32_MAX /* the next of a thunk that is not used again (I4) */

/* More thunks are made when fewer than these are idle. */
enum { LOW_WATER = INCSTACK__THUNK_COUNT / 4 };

/* A later pool holds its own, behind its cells. */
static inline struct barrier *barrier_of(uint32_t number)
{
	uint32_t index = number % INCSTACK__THUNK_COUNT;
	if (__builtin_expect(number < INCSTACK__THUNK_COUNT, 1))
		return &barriers[index];
	return (struct barrier *)thunk_cell(thunk_address(number - index) + INCSTACK__POOL_BYTES) +
	       index;
}

int incstack__pool_open(void)
{
	static atomic_int state;
	if (atomic_load_explicit(&state, memory_order_acquire))
		return 0;
	if (mprotect(incstack__thunk_cells, INCSTACK__POOL_BYTES, PROT_READ | PROT_WRITE))
		return INCSTACK_ENOMEM;
	atomic_store_explicit(&state, 1, memory_order_release);
	return 0;
}

/* Makes thunks when few are left: outside samples and returns, for a stack whose
 * mode needs them. One thread does; the others go on with what there is. */
void incstack__pool_reserve(stack *s)
{
	static atomic_flag generating = ATOMIC_FLAG_INIT;
	if (!has_barriers(s) || atomic_load_explicit(&idle, memory_order_relaxed) >= LOW_WATER ||
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

static uint32_t take_from_pool(runtime *rt)
{
	uint32_t limit = rt->options.thunk_limit;
	if (limit && atomic_load_explicit(&rt->thunks, memory_order_relaxed) >= limit)
		return 0;
	uint32_t number = take_returned();
	if (!number)
		number = take_fresh();
	if (number) {
		atomic_fetch_add_explicit(&rt->thunks, 1, memory_order_relaxed);
		atomic_fetch_sub_explicit(&idle, 1, memory_order_relaxed);
	}
	return number;
}

static uint32_t take(stack *s)
{
	uint32_t number = s->spare;
	if (FAULT(FAULT_THUNK_REUSED) && s->stats.planted % 64 == 63 && s->newest &&
	    s->newest->flags & OBJECT_BARRIER)
		return s->newest->flags >> OBJECT_SHIFT;
	if (!number)
		return take_from_pool(s->runtime);
	s->spare = barrier_of(number)->next;
	return number;
}

static void put(uint32_t *list, uint32_t number)
{
	barrier_of(number)->object = NULL;
	barrier_of(number)->next = *list;
	*list = number;
}

/* Its barrier vanished unannounced: a dead slot may still show it. */
static void retire(uint32_t number)
{
	barrier_of(number)->object = NULL;
	barrier_of(number)->next = NEVER;
}

/* The write into a foreign frame: sanitizers know nothing of it. */
__attribute__((no_sanitize("address", "thread"))) static void store(uintptr_t *slot, uintptr_t word)
{
	*(volatile uintptr_t *)slot = word;
}

__attribute__((no_sanitize("address", "thread"))) static uintptr_t content(const uintptr_t *slot)
{
	return *(const volatile uintptr_t *)slot;
}

static void patch(stack *s, const object *o, uint32_t number)
{
	uintptr_t *slot = object_slot(o);
	uintptr_t resume = content(slot);
	const runtime *rt = s->runtime;
	if (FAULT(FAULT_STORE_FIRST)) {
		store(slot, thunk_address(number)); /* and somebody looks just then */
		if (rt->embedder.logical_pc)
			rt->embedder.logical_pc(rt->context, (uintptr_t)slot, resume);
	}
	*thunk_cell(thunk_address(number)) = (struct incstack__cell){resume, s};
	atomic_signal_fence(memory_order_seq_cst); /* the cell before the slot (I4) */
	store(slot, thunk_address(number));
}

/* The record of the barrier, then the slot (I8). */
static inline void intercept(stack *s, object *o, uintptr_t fp, uint32_t number)
{
	*barrier_of(number) = (struct barrier){o, fp, 0};
	o->flags = (o->flags & OBJECT_FLAGS) | OBJECT_BARRIER | number << OBJECT_SHIFT;
	if (!s->by_embedder)
		patch(s, o, number);
	s->stats.planted++;
}

/* Intercepts the return into the frame of o, by a thunk or by the embedder; false
 * if there is no thunk (which numbers the embedder's barriers, too). */
bool incstack__barrier_plant(stack *s, object *o, uintptr_t fp)
{
	const runtime *rt = s->runtime;
	uint32_t number = take(s);
	if (!number) {
		s->stats.no_thunk++;
		return false;
	}
	if (s->by_embedder && rt->embedder.arm(rt->context, s->identity, o->address) < 0) {
		put(&s->spare, number);
		s->stats.no_thunk++;
		return false;
	}
	intercept(s, o, fp, number);
	return true;
}

static uint32_t number_of(const object *o)
{
	return o->flags >> OBJECT_SHIFT;
}

static void clear(object *o)
{
	o->flags &= OBJECT_FLAGS & ~(uint32_t)OBJECT_BARRIER;
}

/* The return into the frame of o is being served: its thunk intercepts the one into the
 * frame of next from now on. Nobody stands on the thunk: the trampoline has read its
 * cell, and shows unwinders the slot, which it has restored. */
void incstack__barrier_pass_on(stack *s, object *o, object *next, uintptr_t fp)
{
	uint32_t number = number_of(o);
	clear(o);
	intercept(s, next, fp, number);
}

/* The same, where no further one is needed. */
void incstack__barrier_end(stack *s, object *o)
{
	uint32_t number = number_of(o);
	clear(o);
	put(&s->spare, number);
}

/* The embedder is trusted to have told. */
bool incstack__barrier_live(const stack *s, const object *o)
{
	return o->flags & OBJECT_BARRIER &&
	       (s->by_embedder || content(object_slot(o)) == thunk_address(number_of(o)));
}

/* Its thunk leads back to it (I4). */
bool incstack__barrier_recorded(const stack *s, const object *o)
{
	return barrier_of(number_of(o))->object == o &&
	       (s->by_embedder || thunk_cell(thunk_address(number_of(o)))->stack == s);
}

uintptr_t incstack__barrier_fp(const object *o)
{
	return barrier_of(number_of(o))->fp;
}

/* Restores the slot if it is still ours, and frees the thunk. */
void incstack__barrier_lift(stack *s, object *o)
{
	const runtime *rt = s->runtime;
	uint32_t number = number_of(o);
	if (s->by_embedder)
		rt->embedder.disarm(rt->context, s->identity, o->address);
	else if (incstack__barrier_live(s, o))
		store(object_slot(o), thunk_cell(thunk_address(number))->resume);
	incstack__barrier_end(s, o);
}

/* The barrier was passed: its thunk stays readable until the next operation,
 * because an unwinder or the trampoline may be standing on it. */
void incstack__barrier_drop(stack *s, object *o)
{
	uint32_t number = number_of(o);
	clear(o);
	put(&s->limbo, number);
}

/* Whether thunk n, of a barrier of s, may be used again; its slot is given back. */
static bool free_again(stack *s, uint32_t n, bool restore)
{
	const object *o = barrier_of(n)->object;
	if (!o)
		return barrier_of(n)->next != NEVER;
	s->stats.stale++;
	if (!restore)
		return true;
	if (content(object_slot(o)) != thunk_address(n))
		return false;
	store(object_slot(o), thunk_cell(thunk_address(n))->resume);
	return true;
}

/* Forgets every barrier of s. Chain and lists may be in any state, so its thunks
 * are found by their cells. Without restore the stack has ended (I4). */
void incstack__barriers_forget(stack *s, bool restore)
{
	uint32_t count = atomic_load_explicit(&fresh, memory_order_acquire);
	s->spare = s->limbo = 0;
	for (uint32_t n = 1; n < count; n++) {
		if (thunk_cell(thunk_address(n))->stack != s)
			continue;
		if (free_again(s, n, restore))
			put(&s->limbo, n);
		else
			retire(n);
	}
}

void incstack__limbo_empty(stack *s)
{
	while (s->limbo) {
		uint32_t number = s->limbo;
		s->limbo = barrier_of(number)->next;
		put(&s->spare, number);
	}
}

/* The state moved to a copy of the object. */
void incstack__barrier_move(object *from, object *to)
{
	if (from->flags & OBJECT_BARRIER)
		barrier_of(number_of(from))->object = to;
}

/* Takes o, whose frame is gone, off the known chain. A barrier among them was
 * passed unannounced: what lay in its gap is unknown for ever. */
object *incstack__known_pop(stack *s, object *o)
{
	object *next = physical_parent(o);
	if (o->flags & OBJECT_BARRIER) {
		s->stats.stale++;
		retire(number_of(o));
		if (s->by_embedder)
			put(&s->spare, number_of(o));
		clear(o);
		if (o->flags & OBJECT_GAP)
			incstack__cut(s, o);
		o->flags |= INCSTACK_OBJECT_FILLED;
	}
	return next;
}

void incstack__barrier_return_spare(stack *s)
{
	incstack__limbo_empty(s);
	while (s->spare) {
		uint32_t number = s->spare;
		s->spare = barrier_of(number)->next;
		give_back(number);
		atomic_fetch_sub_explicit(&s->runtime->thunks, 1, memory_order_relaxed);
	}
}

uintptr_t incstack_slot_read(const uintptr_t *slot)
{
	if (!slot || (uintptr_t)slot % sizeof(uintptr_t))
		return 0;
	uintptr_t word = content(slot);
	return is_thunk(word) ? thunk_cell(word)->resume : word;
}

object *incstack__barrier_object(const struct incstack__cell *cell)
{
	return barrier_of(thunk_number((uintptr_t)cell - INCSTACK__POOL_BYTES))->object;
}

/* How many threads look at a stack that may be another's, and be freed. */
static atomic_uint watchers;

static stack *owned(uint32_t number)
{
	stack *s = NULL;
	atomic_fetch_add(&watchers, 1);
	if (__atomic_load_n(&barrier_of(number)->object, __ATOMIC_SEQ_CST))
		s = thunk_cell(thunk_address(number))->stack;
	if (s && (s->by_embedder || s->owner != thread_self()))
		s = NULL;
	atomic_fetch_sub(&watchers, 1);
	return s;
}

/* The next live barrier on a stack of the calling thread, in the order of the thunks:
 * beginning behind *number, which becomes that of its thunk. Null: there is none. */
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

/* Before a stack without barriers is freed. The bound is for a thread that is stopped, or
 * was lost by fork, just there. */
void incstack__barriers_watched(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < 1u << 20 && atomic_load(&watchers); i++)
		__builtin_ia32_pause();
}

/* Gives the slot back; the barrier counts as vanished unannounced. */
void incstack__barrier_uncover(stack *s, uint32_t number)
{
	const object *o = barrier_of(number)->object;
	s->stats.foreign_unwinders++;
	if (o && content(object_slot(o)) == thunk_address(number))
		store(object_slot(o), thunk_cell(thunk_address(number))->resume);
}

/* The stack was copied: a frame pointer into it moves along. */
void incstack__barrier_shift_fp(const object *o, uintptr_t low, uintptr_t high, uintptr_t delta)
{
	struct barrier *b = barrier_of(number_of(o));
	if (o->flags & OBJECT_BARRIER && !FAULT(FAULT_FP_NOT_MOVED) && b->fp >= low && b->fp < high)
		b->fp += delta;
}
