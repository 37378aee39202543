/* SPDX-License-Identifier: MIT
 *
 * Records allocations and deallocations, in the thread that makes them. enter.h says how an event begins
 * and ends.
 *
 * An allocation or a deallocation takes the fast path if the thread is in no event and is_quick()
 * holds. An allocation must also be on the thread's own stack. Otherwise alloc_slowly() or
 * free_slowly() records the event. An allocation on another stack goes to the record of the context
 * that has this stack, or else to the shared record (put_elsewhere).
 */
#include <stdatomic.h>
#include <x86intrin.h>

#include "recorder/events/enter.h"
#include "recorder/heap/heap.h"
#include "recorder/log/stamp.h"

enum { AHEAD_BYTES = 64 << 10 };

static struct incstack_top top_of(struct incstack__caller caller)
{
	return (struct incstack_top){
		.pc = *caller.slot,
		.sp = (uintptr_t)(caller.slot + 1),
		.fp = caller.fp,
	};
}

static inline bool elsewhere(const struct incstack__record *record, struct incstack__caller caller)
{
	return !is_on(record, (uintptr_t)caller.slot);
}

/* Reserves memory before a sample, because a walk that runs out of memory is truncated. */
static __attribute__((noinline)) int reserve(struct incstack__record *record, size_t bytes)
{
	struct incstack__protection before;
	int error;

	incstack__record_protect(&before);
	error = incstack_stack_reserve(record->stack, bytes);
	incstack__record_unprotect(&before);
	return error;
}

/* Remembers how much memory the batch takes, so that the next batch begins with that much memory
 * (flush.c). Each reservation within a batch costs two system calls. */
static __attribute__((noinline)) void reserve_ahead(struct incstack__record *record)
{
	if (record->batch_room < INCSTACK__BATCH_ROOM_MOST)
		record->batch_room += AHEAD_BYTES;
	reserve(record, 2 * AHEAD_BYTES);
}

/* Counts a sample. A read-modify-write with a lock is only needed where threads share a slot. In both
 * cases a kill leaves a whole word. No atomic operation of C is one instruction without a lock. */
static inline void count_start(const struct incstack__record *record, bool alone)
{
	_Atomic uint64_t *started = &record->slot->samples_started;

	if (alone)
		__asm__("incq %0" : "+m"(*(uint64_t *)(uintptr_t)started) : : "cc");
	else
		atomic_fetch_add_explicit(started, 1, memory_order_relaxed);
}

/* Counts a trace that is missing because a signal handler has interrupted a return that the core
 * intercepts. The core takes no sample until it has served the return. */
static void count_in_return(const struct incstack__record *record)
{
	atomic_fetch_add_explicit(&record->slot->in_return, 1, memory_order_relaxed);
}

/* Takes a sample again after an error, if the error was a lack of memory and there is more memory.
 * Otherwise counts the sample as refused. */
static __attribute__((noinline)) uint64_t take_again(struct incstack__record *record,
						     struct incstack_top top, int error)
{
	if (error == INCSTACK_EROOM && reserve(record, INCSTACK__RESERVE_BYTES) == 0)
		error = incstack_stack_sample(record->stack, record->traces, 0, &top);
	record->live.refused += error != 0;
	if (error == INCSTACK_EROOM)
		incstack__record_note(INCSTACK__NOTE_NO_MEMORY);
	if (error == INCSTACK_EBUSY)
		count_in_return(record);
	return error != 0 ? INCSTACK__TRACEFILE_NO_TRACE : record->traces++;
}

/* No event that is compared with a walk takes the fast path. So that the samples of the fast path are compared,
 * too, such an event takes one. EROOM: the bounds of the stack are not known, or there is too
 * little room. */
static __attribute__((noinline)) int take_as_quickly(const struct incstack__record *record,
						     const struct incstack_top *top)
{
	return incstack__sample_caller(record->stack, record->traces, top->pc, top->sp, top->fp, 0);
}

static inline uint64_t take(struct incstack__record *record, const struct incstack_top *top,
			    bool alone)
{
	int error;

	count_start(record, alone);
	if (__builtin_expect(incstack_stack_room(record->stack) < AHEAD_BYTES, 0))
		reserve_ahead(record);
	error = record->check ? take_as_quickly(record, top) : INCSTACK_EROOM;
	if (error == INCSTACK_EROOM)
		error = incstack_stack_sample(record->stack, record->traces, 0, top);
	if (__builtin_expect(error != 0, 0))
		return take_again(record, *top, error);
	return record->traces++;
}

/* Takes a sample that the fast path could not take, mostly because its memory is almost used up.
 * Only the caller's slot is passed, because the fast path would have to keep anything else across
 * the sample. The word below the slot has the caller's frame pointer (preload.h). */
static __attribute__((noinline, cold)) uint64_t take_with_room(struct incstack__record *record,
							       const uintptr_t *slot, int error)
{
	const struct incstack_top top = top_of((struct incstack__caller){slot, slot[-1]});

	if (error != INCSTACK_EROOM)
		return take_again(record, top, error);
	reserve_ahead(record);
	error = incstack_stack_sample(record->stack, record->traces, 0, &top);
	return error != 0 ? take_again(record, top, error) : record->traces++;
}

/* Takes a sample on the fast path, as take() does, with the caller's frame in registers. */
static inline uint64_t take_quickly(struct incstack__record *record, struct incstack__caller caller)
{
	int error;

	count_start(record, 1);
	error = incstack__sample_caller(record->stack, record->traces, *caller.slot,
					(uintptr_t)(caller.slot + 1), caller.fp, AHEAD_BYTES);
	if (__builtin_expect(error != 0, 0))
		return take_with_room(record, caller.slot, error);
	return record->traces++;
}

/* Out of line. If it were inlined, the compiler would add a zero for each event that was not
 * dropped. */
static __attribute__((noinline)) void drop(struct incstack__record *record)
{
	record->live.dropped++;
}

/* Counts an allocation for which there is no room. In a handler that has interrupted a return, no
 * batch can be written. Then the allocation counts as missing, and its trace as lost in a
 * return. */
static __attribute__((noinline, cold)) void lose_alloc(struct incstack__record *record)
{
	if (!incstack__stack_is_busy(record->stack)) {
		drop(record);
		return;
	}
	count_start(record, 0);
	record->live.refused++;
	count_in_return(record);
	count_missing(record);
}

static void put_alloc(struct incstack__record *record, const void *block, size_t bytes,
		      struct incstack__caller caller)
{
	const struct incstack_top top = top_of(caller);
	uint64_t trace;

	incstack__record_local.newest = block;
	if (!incstack__record_is_sampled(record, bytes))
		return;
	if (!incstack__record_make_room(record)) {
		lose_alloc(record);
		return;
	}
	incstack__record_mark(block);
	if (record->check)
		incstack__record_check_skip(record, record->traces);
	trace = take(record, &top, !incstack__slot_is_shared(record->slot));
	if (record->check && trace != INCSTACK__TRACEFILE_NO_TRACE)
		incstack__record_check_walk(record, trace, &top);
	log_alloc_slowly(&record->log, block, bytes, trace);
	if (record->retrieved == 0 && trace == 0) {
		incstack__record_complete(record);
		record->look = 0; /* so that the next event may allow the fast path: room.c */
	}
}

static __attribute__((noinline)) void put_elsewhere(const void *block, size_t bytes,
						    struct incstack__caller caller)
{
	struct incstack__record *record;
	struct incstack__protection before;

	incstack__record_protect(&before);
	record = incstack__event_lock_record((uintptr_t)caller.slot);
	if (record == incstack__recording.shared_record &&
	    incstack__recording.mode != INCSTACK_MODE_FULL)
		incstack__record_note(INCSTACK__NOTE_UNKNOWN_STACKS);
	if (incstack_stack_set_owner(record->stack) == 0)
		put_alloc(record, block, bytes, caller);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__record_unprotect(&before);
}

static __attribute__((noinline)) void alloc_slowly(const void *block, size_t bytes,
						   struct incstack__caller caller)
{
	struct incstack__record *record = enter();

	if (!record) {
		incstack__event_count_interrupting();
		return;
	}
	if (incstack__pools_needed() && record != incstack__recording.shared_record)
		incstack__record_make_thunks(record, caller);
	if (record == incstack__recording.shared_record || !elsewhere(record, caller))
		put_alloc(record, block, bytes, caller);
	else
		put_elsewhere(block, bytes, caller);
	leave(record);
}

/* Logs an allocation on the fast path that does not have the short form, or that needs a clock, and
 * ends the event. */
static __attribute__((noinline)) void end_alloc(struct incstack__record *record, const void *block,
						size_t bytes, uint64_t trace)
{
	if (log_alloc(&record->log, record->alone, block, bytes, trace) != 0)
		drop(record);
	end();
}

/* The events of the fast path are the shortest functions that the compiler can make: they have no frame
 * pointer, and what is rare is called at their ends. is_quick() says that there is room. */
void incstack__heap_on_alloc(const void *block, size_t bytes, struct incstack__caller caller)
{
	struct incstack__record *record;

	if (__builtin_expect(incstack__record_local.state != 0, 0)) {
		alloc_slowly(block, bytes, caller);
		return;
	}
	begin(stack_pointer()); /* first, so that a handler that forks sees that the record is in use */
	record = incstack__record_local.mine;
	if (__builtin_expect(!is_quick(record) || elsewhere(record, caller), 0)) {
		end();
		alloc_slowly(block, bytes, caller);
	} else {
		const uint64_t trace = take_quickly(record, caller);

		if (record->alone &&
		    incstack__tracefile_put_small(&record->log, record->log.stamp + 1,
						  (uintptr_t)block, bytes, trace))
			end();
		else
			end_alloc(record, block, bytes, trace);
	}
}

static void put_free(struct incstack__record *record, const void *block)
{
	if (incstack__record_make_room(record))
		log_free_slowly(&record->log, block);
	else if (incstack__stack_is_busy(record->stack)) /* see lose_alloc() */
		count_missing(record);
	else
		drop(record);
}

/* Records a deallocation on another stack than the thread's own stack. There the thread must not
 * write its batch, because the open callers would be truncated. So if the batch is full, the event
 * goes to the record of the other stack, as allocations there do. */
static __attribute__((noinline)) void put_free_elsewhere(struct incstack__record *record,
							 const void *block)
{
	struct incstack__protection before;

	if (!incstack__record_is_full(record)) {
		log_free_slowly(&record->log, block);
		return;
	}
	incstack__record_protect(&before);
	record = incstack__event_lock_record(HERE);
	if (incstack_stack_set_owner(record->stack) == 0)
		put_free(record, block);
	incstack__lock_give(INCSTACK__LOCK_RECORDING);
	incstack__record_unprotect(&before);
}

static __attribute__((noinline)) void free_slowly(const void *block)
{
	struct incstack__record *record;

	if (!incstack__record_is_marked(block) && !incstack__record_is_unloading())
		return;
	record = enter();
	if (!record) {
		incstack__event_count_interrupting();
		return;
	}
	if (record == incstack__recording.shared_record || is_on(record, HERE))
		put_free(record, block);
	else
		put_free_elsewhere(record, block);
	leave(record);
}

/* As end_alloc(). */
static __attribute__((noinline)) void end_free(struct incstack__record *record, const void *block)
{
	if (log_free(&record->log, record->alone, block) != 0)
		drop(record);
	end();
}

void incstack__heap_on_free(const void *block)
{
	struct incstack__record *record;

	if (__builtin_expect(incstack__record_local.state != 0, 0)) {
		free_slowly(block);
		return;
	}
	begin(stack_pointer());
	record = incstack__record_local.mine;
	if (__builtin_expect(!is_quick(record), 0)) {
		end();
		free_slowly(block);
	} else if (record->alone &&
		   incstack__tracefile_put_freed(&record->log, record->log.stamp + 1,
						 (uintptr_t)block)) {
		end();
	} else {
		end_free(record, block);
	}
}
