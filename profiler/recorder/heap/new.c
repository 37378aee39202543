/* SPDX-License-Identifier: MIT
 *
 * Records blocks of allocators that may or may not have called malloc for them. A block that the
 * thread has recorded since the allocator was called is not recorded twice.
 */
#include "recorder/events/events.h"
#include "heap.h"

uint64_t incstack__heap_position(void)
{
	const struct incstack__record *record = incstack__record_local.mine;

	incstack__record_local.newest = NULL;
	return record ? record->log.used : 0;
}

/* Returns the number of words of the event that begins with this word. */
static size_t words_of(uint64_t word)
{
	switch (word >> INCSTACK__TRACEFILE_KIND_SHIFT) {
	case INCSTACK__TRACEFILE_ALLOC:
		return INCSTACK__TRACEFILE_ALLOC_BYTES / INCSTACK__TRACEFILE_WORD_BYTES;
	case INCSTACK__TRACEFILE_WIDE:
		return word >> INCSTACK__TRACEFILE_TIME_SHIFT == INCSTACK__TRACEFILE_TIME
			       ? 1
			       : INCSTACK__TRACEFILE_WIDE_BYTES / INCSTACK__TRACEFILE_WORD_BYTES;
	default:
		return 1;
	}
}

static bool allocates(const uint64_t *event, uint64_t block)
{
	switch (event[0] >> INCSTACK__TRACEFILE_KIND_SHIFT) {
	case INCSTACK__TRACEFILE_SMALL:
		return (event[0] & INCSTACK__TRACEFILE_SMALL_POINTER_MAX) == block / 16;
	case INCSTACK__TRACEFILE_ALLOC:
		return (event[0] & INCSTACK__TRACEFILE_POINTER_MAX) == block;
	case INCSTACK__TRACEFILE_WIDE:
		return words_of(event[0]) > 1 && event[2] == block &&
		       (event[0] & 3) != INCSTACK__TRACEFILE_FREE;
	default:
		return false;
	}
}

/* Whether the thread has recorded the block since its log had that position. Events of the fast
 * path are found in the log, the newest one of the slow path in `newest`. */
static bool has_recorded(const void *block, uint64_t position)
{
	const struct incstack__record *record = incstack__record_local.mine;
	const uint64_t *event;
	const uint64_t *end;

	if (incstack__record_local.newest == block)
		return true;
	if (!record || position > record->log.used)
		return false;
	event = (const uint64_t *)(record->log.data + position);
	end = (const uint64_t *)(record->log.data + record->log.used);
	for (; event < end; event += words_of(event[0]))
		if (allocates(event, (uintptr_t)block))
			return true;
	return false;
}

void incstack__heap_on_new(const void *block, size_t bytes, struct incstack__caller caller,
			   uint64_t position)
{
	if (!has_recorded(block, position))
		incstack__heap_on_alloc(block, bytes, caller);
}
