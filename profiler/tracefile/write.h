/* SPDX-License-Identifier: MIT
 *
 * Encodes the blocks of a trace file inside the recorded process. Nothing here allocates,
 * takes a lock, calls stdio or uses a global variable, so every function may run in a signal
 * handler and inside malloc. The caller owns each buffer, and writes each finished block by one
 * write(2) with O_APPEND.
 *
 * A function that finishes a block returns its length, INCSTACK_EINVAL, or INCSTACK_ENOMEM if
 * the buffer is too small.
 */
#ifndef INCSTACK_TRACEFILE_WRITE_H
#define INCSTACK_TRACEFILE_WRITE_H

#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <incstack/incstack.h>

#include "format.h"
#include "identity.h"

/* The events of one thread since its last batch, in the order in which they happened. */
struct incstack__tracefile_log {
	unsigned char *data; /* the first event, aligned to 8 */
	size_t size;         /* bytes of room for events; `used` of them are taken */
	size_t used;
	uint64_t stamp; /* of the newest event; 0: there is none */
	uint64_t trace; /* of the next allocation that fits into one word */
};

static inline void incstack__tracefile_log_clear(struct incstack__tracefile_log *log)
{
	log->used = 0;
	log->stamp = 0;
	log->trace = 0;
}

/* Initializes a log. The memory is aligned to 8. */
static inline void incstack__tracefile_log_init(struct incstack__tracefile_log *log, void *memory,
						size_t size)
{
	log->data = memory;
	log->size = size;
	incstack__tracefile_log_clear(log);
}

static inline bool incstack__tracefile_log_fits(const struct incstack__tracefile_log *log,
						size_t bytes)
{
	return log->size - log->used >= bytes;
}

/* Adds an event whose words fit. A signal handler may jump out, or a kill may end the thread, at
 * any instruction. So the event counts only after all its words were stored. */
static inline void incstack__tracefile_log_add(struct incstack__tracefile_log *log, uint64_t stamp,
					       const void *words, size_t bytes)
{
	memcpy(log->data + log->used, words, bytes);
	atomic_signal_fence(memory_order_seq_cst);
	log->used += bytes;
	atomic_signal_fence(memory_order_seq_cst);
	log->stamp = stamp;
}

/* Adds a stamp to which the stamp of the next event is relative. Does nothing if there is no room,
 * or if the stamp does not fit into a word. */
void incstack__tracefile_put_time(struct incstack__tracefile_log *log, uint64_t stamp);

/* Adds an event whose values do not fit into one word. */
int incstack__tracefile_put_long(struct incstack__tracefile_log *log, uint64_t kind, uint64_t stamp,
				 uint64_t pointer, uint64_t size, uint64_t trace);

static inline uint64_t incstack__tracefile_event_word(uint64_t kind, uint64_t since,
						      uint64_t pointer)
{
	return kind << INCSTACK__TRACEFILE_KIND_SHIFT | since << INCSTACK__TRACEFILE_STAMP_SHIFT |
	       pointer;
}

/* Adds an allocation in the short form, for which there is room. Returns false if it has not that
 * form. */
static inline bool incstack__tracefile_put_small(struct incstack__tracefile_log *log,
						 uint64_t stamp, uint64_t pointer, uint64_t size,
						 uint64_t trace)
{
	const uint64_t since = stamp - log->stamp;
	const uint64_t rotated = pointer >> 4 | pointer << 60;
	const uint64_t word = since << INCSTACK__TRACEFILE_SMALL_STAMP_SHIFT |
			      size << INCSTACK__TRACEFILE_SMALL_SIZE_SHIFT | rotated;

	/* One branch: is any bit set above those that the short form has? */
	if (since / (INCSTACK__TRACEFILE_SMALL_STAMP_MAX + 1) |
	    size >> INCSTACK__TRACEFILE_SMALL_SIZE_BITS |
	    rotated >> INCSTACK__TRACEFILE_SMALL_SIZE_SHIFT | (trace ^ log->trace))
		return false;
	incstack__tracefile_log_add(log, stamp, &word, sizeof(word));
	log->trace =
		trace + 1; /* last: if a jump comes before this, the next event names its trace */
	return true;
}

/* Adds an allocation, which is stamped after it happened. `trace` is the number of traces that
 * were taken on this thread since its last batch and before this trace, or
 * INCSTACK__TRACEFILE_NO_TRACE. Returns 0, or INCSTACK_ENOMEM if the log is full: write a batch
 * first. */
static inline int incstack__tracefile_put_alloc(struct incstack__tracefile_log *log, uint64_t stamp,
						uint64_t pointer, uint64_t size, uint64_t trace)
{
	if (!incstack__tracefile_log_fits(log, INCSTACK__TRACEFILE_WORD_BYTES))
		return INCSTACK_ENOMEM;
	if (incstack__tracefile_put_small(log, stamp, pointer, size, trace))
		return 0;
	return incstack__tracefile_put_long(log, INCSTACK__TRACEFILE_ALLOC, stamp, pointer, size,
					    trace);
}

/* Adds a deallocation in one word, for which there is room. Returns false if it does not fit into one
 * word. */
static inline bool incstack__tracefile_put_freed(struct incstack__tracefile_log *log,
						 uint64_t stamp, uint64_t pointer)
{
	const uint64_t since = stamp - log->stamp;
	const uint64_t word =
		incstack__tracefile_event_word(INCSTACK__TRACEFILE_FREE, since, pointer);

	if (since >> INCSTACK__TRACEFILE_STAMP_BITS | pointer >> INCSTACK__TRACEFILE_STAMP_SHIFT)
		return false;
	incstack__tracefile_log_add(log, stamp, &word, sizeof(word));
	return true;
}

/* Adds a deallocation, which is stamped before it happens. */
static inline int incstack__tracefile_put_free(struct incstack__tracefile_log *log, uint64_t stamp,
					       uint64_t pointer)
{
	if (!incstack__tracefile_log_fits(log, INCSTACK__TRACEFILE_WORD_BYTES))
		return INCSTACK_ENOMEM;
	if (incstack__tracefile_put_freed(log, stamp, pointer))
		return 0;
	return incstack__tracefile_put_long(log, INCSTACK__TRACEFILE_FREE, stamp, pointer, 0,
					    INCSTACK__TRACEFILE_NO_TRACE);
}

/* Fills in the header page. `command` is cut if it does not fit. */
int incstack__tracefile_header_init(struct incstack__tracefile_header *header, uint64_t pid,
				    uint64_t start_ns, uint64_t interval, uint32_t mode,
				    const char *command);

/* Returns a number of bytes that is enough for the batch. `tree` may be null. */
size_t incstack__tracefile_batch_bytes(const struct incstack_tree *tree, size_t event_bytes);

/* The origin of a batch. */
struct incstack__tracefile_batch_of {
	uint32_t thread;
	uint32_t epoch;
	uint32_t serial;
};

/* Makes a block from `tree` (null: no traces) and `log`, which does not change. Nothing in the tree
 * is decoded, so each position is -1. The function overwrites these fields, so afterwards the tree
 * can only be released. Weights are not written. */
int64_t incstack__tracefile_batch(void *buffer, size_t size, struct incstack__tracefile_batch_of of,
				  const struct incstack__tracefile_log *log,
				  const struct incstack_tree *tree);

/* Makes such a block in parts, which follow each other in the block. Most of the events stay in the
 * log and are the middle part. The other two parts are in the buffer. The last part ends where the
 * block ends. */
enum { INCSTACK__TRACEFILE_BATCH_PARTS = 3 };
int64_t incstack__tracefile_batch_parts(void *buffer, size_t size,
					struct incstack__tracefile_batch_of of,
					const struct incstack__tracefile_log *log,
					const struct incstack_tree *tree,
					struct iovec parts[INCSTACK__TRACEFILE_BATCH_PARTS]);

/* A MODULES block: begin, add each module, finish. */
struct incstack__tracefile_modules {
	unsigned char *data;
	size_t size;
	size_t used;
	uint32_t count;
	uint32_t epoch;
};

int incstack__tracefile_modules_begin(struct incstack__tracefile_modules *modules, void *buffer,
				      size_t size, uint32_t epoch);
/* Adds a module. `identity` may be null if it is unknown. Returns INCSTACK_ENOMEM if the module
 * does not fit; what was added before stays. */
int incstack__tracefile_modules_add(struct incstack__tracefile_modules *modules, const char *path,
				    uint64_t bias, uint64_t low, uint64_t high,
				    const struct incstack__identity *identity);
int64_t incstack__tracefile_modules_finish(struct incstack__tracefile_modules *modules,
					   uint32_t thread);

int64_t incstack__tracefile_tally(void *buffer, size_t size, uint32_t thread,
				  const struct incstack__tracefile_tally *counters);

#endif
