/* SPDX-License-Identifier: MIT
 *
 * Encodes the blocks of a heap trace file inside the profiled process. Nothing
 * here allocates, locks, calls stdio or touches a global: every function may run
 * in a signal handler and inside malloc. The caller owns each buffer and writes
 * finished blocks with one O_APPEND write(2).
 *
 * The functions that finish a block return its bytes, INCSTACK_EINVAL, or
 * INCSTACK_ENOMEM where the buffer is too small.
 */
#ifndef INCSTACK_HEAP_TRACE_WRITE_H
#define INCSTACK_HEAP_TRACE_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/incstack.h>

#include "trace_format.h"

/* Events of one thread since its last batch, in its order. */
struct incstack__trace_log {
	unsigned char *data; /* the first event, aligned to 8 */
	size_t size;         /* of all events that find room, `used` of it taken */
	size_t used;
	uint64_t stamp; /* of the newest event; 0: there is none */
	uint64_t trace; /* what the next allocation has that fits into one word */
};

static inline void incstack__trace_log_clear(struct incstack__trace_log *log)
{
	log->used = 0;
	log->stamp = 0;
	log->trace = 0;
}

/* memory is aligned to 8. */
static inline void incstack__trace_log_init(struct incstack__trace_log *log, void *memory,
					    size_t size)
{
	log->data = memory;
	log->size = size;
	incstack__trace_log_clear(log);
}

static inline int incstack__trace_log_fits(const struct incstack__trace_log *log, size_t bytes)
{
	return log->size - log->used >= bytes;
}

/* Words that fit. A handler may jump out, and a kill end the thread, at any place: they
 * count when all are there. */
static inline void incstack__trace_log_add(struct incstack__trace_log *log, uint64_t stamp,
					   const void *words, size_t bytes)
{
	memcpy(log->data + log->used, words, bytes);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	log->used += bytes;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	log->stamp = stamp;
}

/* Moves the log's time on, so that the event that comes next counts from there. Nothing is
 * done where there is no room, or no word has room for the stamp. */
void incstack__trace_put_time(struct incstack__trace_log *log, uint64_t stamp);

/* An event whose values do not fit into one word. */
int incstack__trace_put_long(struct incstack__trace_log *log, uint64_t kind, uint64_t stamp,
			     uint64_t pointer, uint64_t size, uint64_t trace);

static inline uint64_t incstack__trace_event_word(uint64_t kind, uint64_t since, uint64_t pointer)
{
	return kind << INCSTACK__TRACE_KIND_SHIFT | since << INCSTACK__TRACE_STAMP_SHIFT | pointer;
}

/* An allocation, stamped after it happened. trace: how many traces were taken on
 * this thread since its last batch before this one, or INCSTACK__TRACE_NO_TRACE.
 * Returns 0, or INCSTACK_ENOMEM when the log is full: write a batch first. */
static inline int incstack__trace_put_alloc(struct incstack__trace_log *log, uint64_t stamp,
					    uint64_t pointer, uint64_t size, uint64_t trace)
{
	const uint64_t since = stamp - log->stamp;
	const uint64_t rotated = pointer >> 4 | pointer << 60;
	const uint64_t word = since << INCSTACK__TRACE_SMALL_STAMP_SHIFT |
			      size << INCSTACK__TRACE_SMALL_SIZE_SHIFT | rotated;

	/* One branch: a 1 in any place above those that the short form has. */
	if (since / (INCSTACK__TRACE_SMALL_STAMP_MAX + 1) |
	    size >> INCSTACK__TRACE_SMALL_SIZE_BITS | rotated >> INCSTACK__TRACE_SMALL_SIZE_SHIFT |
	    (trace ^ log->trace))
		return incstack__trace_put_long(log, INCSTACK__TRACE_ALLOC, stamp, pointer, size,
						trace);
	if (!incstack__trace_log_fits(log, INCSTACK__TRACE_WORD_BYTES))
		return INCSTACK_ENOMEM;
	incstack__trace_log_add(log, stamp, &word, sizeof(word));
	log->trace = trace + 1; /* last: if a jump comes before, the next one names its trace */
	return 0;
}

/* A deallocation, stamped before it happens. */
static inline int incstack__trace_put_free(struct incstack__trace_log *log, uint64_t stamp,
					   uint64_t pointer)
{
	const uint64_t since = stamp - log->stamp;
	const uint64_t word = incstack__trace_event_word(INCSTACK__TRACE_FREE, since, pointer);

	if (since >> INCSTACK__TRACE_STAMP_BITS | pointer >> INCSTACK__TRACE_STAMP_SHIFT)
		return incstack__trace_put_long(log, INCSTACK__TRACE_FREE, stamp, pointer, 0,
						INCSTACK__TRACE_NO_TRACE);
	if (!incstack__trace_log_fits(log, INCSTACK__TRACE_WORD_BYTES))
		return INCSTACK_ENOMEM;
	incstack__trace_log_add(log, stamp, &word, sizeof(word));
	return 0;
}

/* Fills in the header page. command is cut where it does not fit. */
int incstack__trace_header_init(struct incstack__trace_header *header, uint64_t pid,
				uint64_t start_ns, uint64_t interval, uint32_t mode,
				const char *command);

/* A buffer of so many bytes is always enough for the batch. tree may be null. */
size_t incstack__trace_batch_bytes(const struct incstack_tree *tree, size_t event_bytes);

/* What a batch says of itself. */
struct incstack__trace_batch_of {
	uint32_t thread;
	uint32_t epoch;
	uint32_t serial;
};

/* Makes a block of tree (null: no traces) and log, which stays as it is. Nothing in the tree
 * is decoded: each bci is -1, and serves as scratch, so the tree is the caller's alone and of
 * no use afterwards but to be released. Weights are not written. */
int64_t incstack__trace_batch(void *buffer, size_t size, struct incstack__trace_batch_of of,
			      const struct incstack__trace_log *log,
			      const struct incstack_tree *tree);

/* A MODULES block: begin, add each module, finish. */
struct incstack__trace_modules {
	unsigned char *data;
	size_t size;
	size_t used;
	uint32_t count;
	uint32_t epoch;
};

int incstack__trace_modules_begin(struct incstack__trace_modules *modules, void *buffer,
				  size_t size, uint32_t epoch);
/* INCSTACK_ENOMEM: it does not fit, and what was added before stays. */
int incstack__trace_modules_add(struct incstack__trace_modules *modules, const char *path,
				uint64_t bias, uint64_t low, uint64_t high);
int64_t incstack__trace_modules_finish(struct incstack__trace_modules *modules, uint32_t thread);

int64_t incstack__trace_tally(void *buffer, size_t size, uint32_t thread,
			      const struct incstack__trace_tally *counters);

#endif
