/* SPDX-License-Identifier: MIT
 *
 * A recording. All that it knows is guarded by one lock, which is held for a moment in each event: Python's
 * allocators for raw memory are called without Python's lock.
 */
#include "recording.h"

#include <stdatomic.h>

#include "blocks.h"
#include "check.h"
#include "lock.h"

struct recording_sums recording_sums;

static atomic_bool is_on;
static enum recording_mode mode; /* while it is on */
/* The number of the last highest sum that was left: what a context had then must be kept. */
static uint64_t peaks;
static bool at_peak; /* the sum is the highest one */

bool recording_is_on(void)
{
	return atomic_load_explicit(&is_on, memory_order_relaxed);
}

/* Takes the lock if something is recorded. */
static inline bool enter(void)
{
	if (!recording_is_on())
		return false;
	lock_take();
	if (recording_is_on())
		return true;
	lock_give();
	return false;
}

/* ---- where an event is ------------------------------------------------------------------ */

#if PY_VERSION_HEX < 0x030d0000
#define PyThreadState_GetUnchecked _PyThreadState_UncheckedGet
#endif

/* The calling thread's state, or null. Without Python's lock, the thread's frames hold still as well. */
static inline struct thread *thread_now(bool is_locked)
{
	PyThreadState *state =
		is_locked ? PyThreadState_GetUnchecked() : PyGILState_GetThisThreadState();
	return state ? threads_find(state) : NULL;
}

static inline uint32_t context_of(struct thread *t)
{
	if (!t)
		return CONTEXTS_OUTSIDE;
	const uint32_t context = threads_context(t);
	if (mode == RECORDING_CHECKED)
		check_context(t, context, &recording_sums.compared, &recording_sums.mismatches);
	return context;
}

/* The highest sum is left: each context that changes later notes what it had. */
static inline void keep_peak(struct context *c)
{
	if (c->peak != peaks) {
		c->peak_bytes = c->live_bytes;
		c->peak = peaks;
	}
}

/* ---- events ----------------------------------------------------------------------------- */

static void count(struct thread *t, void *block, size_t size, uint32_t context)
{
	struct context *c = &contexts[context];
	struct recording_sums *sums = &recording_sums;
	keep_peak(c);
	c->bytes += size;
	c->calls++;
	c->live_bytes += size;
	c->live_calls++;
	sums->bytes += size;
	sums->calls++;
	sums->live_bytes += size;
	sums->live_calls++;
	if (sums->live_bytes >= sums->peak_bytes) {
		sums->peak_bytes = sums->live_bytes;
		at_peak = true;
	}
	if (t)
		t->newest_block = (uintptr_t)block;
}

static void uncount(struct thread *t, void *block, const struct block *was)
{
	struct context *c = &contexts[was->context];
	struct recording_sums *sums = &recording_sums;
	if (at_peak && was->size) {
		peaks++;
		at_peak = false;
	}
	keep_peak(c);
	c->live_bytes -= was->size;
	c->live_calls--;
	sums->live_bytes -= was->size;
	sums->live_calls--;
	if (t && t->newest_block == (uintptr_t)block) {
		c->temporary++;
		sums->temporary++;
		t->newest_block = 0;
	}
}

static void add(void *block, size_t size, bool is_locked)
{
	struct thread *t = thread_now(is_locked);
	struct block was;
	const uint32_t context = context_of(t);
	const enum blocks_added added =
		blocks_add((uintptr_t)block, (struct block){size, context}, &was);
	if (added == BLOCKS_REPLACED)
		uncount(NULL, block, &was); /* its end was not seen */
	if (added == BLOCKS_REFUSED)
		recording_sums.unknown++;
	else
		count(t, block, size, context);
}

static void drop(void *block)
{
	struct block was;
	if (codes_freed(block))
		threads_forget_code();
	if (mode != RECORDING_NUMBERS && blocks_remove((uintptr_t)block, &was))
		uncount(threads_own(), block, &was);
}

void recording_allocated(void *block, size_t size, bool is_locked)
{
	if (!enter())
		return;
	if (mode != RECORDING_NUMBERS)
		add(block, size, is_locked);
	lock_give();
}

/* Called before the block is freed, so that no other thread can get its address first. */
void recording_freed(void *block)
{
	if (!enter())
		return;
	drop(block);
	lock_give();
}

/* Another thread may get the old address as soon as the block has moved, so it is forgotten before. */
void recording_moving(void *from, struct recording_move *move)
{
	struct block was;
	move->is_known = false;
	if (!enter())
		return;
	move->is_known = mode != RECORDING_NUMBERS && blocks_remove((uintptr_t)from, &was);
	if (move->is_known) {
		move->size = was.size;
		move->context = was.context;
	}
	lock_give();
}

void recording_moved(const struct recording_move *move, void *from, void *to, size_t size,
		     bool is_locked)
{
	const struct block was = {move->size, move->context};
	struct block other;
	if (!enter())
		return;
	if (move->is_known && to)
		uncount(NULL, from, &was);
	else if (move->is_known && blocks_add((uintptr_t)from, was, &other) == BLOCKS_REFUSED)
		recording_sums.unknown++;
	if (to && mode != RECORDING_NUMBERS)
		add(to, size, is_locked);
	lock_give();
}

/* ---- begin and end ---------------------------------------------------------------------- */

static void forget(void)
{
	threads_close();
	blocks_free();
	contexts_free();
	codes_free();
}

/* Begins a new recording; the one before is forgotten. Returns false if there is no memory. */
bool recording_start(enum recording_mode wanted)
{
	lock_watch_forks();
	lock_take();
	forget();
	recording_sums = (struct recording_sums){0};
	peaks = 0;
	at_peak = false;
	const bool is_open = contexts_open() && threads_open();
	mode = wanted;
	atomic_store(&is_on, is_open);
	lock_give();
	return is_open;
}

/* Ends it. What was recorded can be read until the next start. */
void recording_stop(void)
{
	lock_take();
	atomic_store(&is_on, false);
	threads_close();
	lock_give();
}

/* Makes `peak_bytes` of each context right, until the next event. */
void recording_complete_peak(void)
{
	if (at_peak)
		peaks++;
	at_peak = false;
	for (uint32_t i = 0; i < context_count; i++)
		keep_peak(&contexts[i]);
}

/* Takes a sample of the calling thread. Returns its context. */
uint32_t recording_context(bool is_locked)
{
	if (!enter())
		return CONTEXTS_ROOT;
	const uint32_t context = context_of(thread_now(is_locked));
	lock_give();
	return context;
}
