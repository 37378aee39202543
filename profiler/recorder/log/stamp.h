/* SPDX-License-Identifier: MIT
 *
 * Stamps events and writes them to a thread's log.
 */
#ifndef INCSTACK_RECORDER_STAMP_H
#define INCSTACK_RECORDER_STAMP_H

#include <stdbool.h>
#include <stdatomic.h>
#include <x86intrin.h>

#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/log/log.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

static inline bool is_alone(void)
{
	return !atomic_load_explicit(&incstack__recording.shared, memory_order_relaxed);
}

/* Stamps order the events of different records. While there is only one record, a count suffices,
 * because a count that starts at the clock's value never overtakes the clock. A thread that uses a
 * second record announces that before its first event (incstack__record_share), and every event
 * that depends on that event sees the announcement. This function is out of line so that the
 * compiler sees that the other stamps are consecutive. */
static __attribute__((noinline)) int put_alloc_by_clock(struct incstack__tracefile_log *log,
							uintptr_t block, size_t bytes,
							uint64_t trace)
{
	return incstack__tracefile_put_alloc(log, __rdtsc(), block, bytes, trace);
}

static __attribute__((noinline)) int put_free_by_clock(struct incstack__tracefile_log *log,
						       uintptr_t block)
{
	return incstack__tracefile_put_free(log, __rdtsc(), block);
}

static inline int log_alloc(struct incstack__tracefile_log *log, bool alone, const void *block,
			    size_t bytes, uint64_t trace)
{
	if (!alone)
		return put_alloc_by_clock(log, (uintptr_t)block, bytes, trace);
	return incstack__tracefile_put_alloc(log, log->stamp + 1, (uintptr_t)block, bytes, trace);
}

static inline int log_free(struct incstack__tracefile_log *log, bool alone, const void *block)
{
	if (!alone)
		return put_free_by_clock(log, (uintptr_t)block);
	return incstack__tracefile_put_free(log, log->stamp + 1, (uintptr_t)block);
}

/* Returns the next stamp once the program has forbidden the time-stamp counter. No event takes the
 * fast path then. seq_cst: the stamps of all threads are in one order. */
static inline uint64_t stamp_of_counter(void)
{
	return atomic_fetch_add_explicit(&incstack__recording.counter, 1, memory_order_seq_cst) + 1;
}

static inline bool has_counter(void)
{
	return atomic_load_explicit(&incstack__recording.counter, memory_order_relaxed) != 0;
}

/* Logs an event of the slow path. */
static inline int log_alloc_slowly(struct incstack__tracefile_log *log, const void *block,
				   size_t bytes, uint64_t trace)
{
	if (!has_counter())
		return log_alloc(log, is_alone(), block, bytes, trace);
	return incstack__tracefile_put_alloc(log, stamp_of_counter(), (uintptr_t)block, bytes,
					     trace);
}

static inline int log_free_slowly(struct incstack__tracefile_log *log, const void *block)
{
	if (!has_counter())
		return log_free(log, is_alone(), block);
	return incstack__tracefile_put_free(log, stamp_of_counter(), (uintptr_t)block);
}

#endif
