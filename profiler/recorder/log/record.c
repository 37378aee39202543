/* SPDX-License-Identifier: MIT
 *
 * Records of threads and contexts: prepared, shown to readers of the spool, and released.
 */
#include <stdatomic.h>

#include "own_stack.h"
#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/log/log.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

/* The memory in which batches are made if a handler may make them. It is large from the start, because a
 * handler cannot enlarge it. Only the used part takes pages. */
enum { BLOCK_BYTES_AHEAD = 4 << 20 };

int incstack__record_prepare(struct incstack__record *record, uint32_t number)
{
	record->number = number;
	record->slot = &incstack__recording.slots[0];
	record->epoch = atomic_load_explicit(&incstack__recording.epoch, memory_order_acquire);
	incstack__record_seed(record);
	record->block_bytes = incstack__kind->samples_in_handlers ? BLOCK_BYTES_AHEAD
								  : 2 * INCSTACK__SPOOL_EVENT_BYTES;
	record->block = incstack__record_map(record->block_bytes);
	if (!record->block ||
	    ((incstack__kind->samples_in_handlers || incstack__recording.crosscheck) &&
	     incstack__own_stack_make(record) != 0))
		return INCSTACK_ENOMEM;
	return incstack__recording.crosscheck ? incstack__record_check_create(record) : 0;
}

void incstack__record_publish(struct incstack__record *record)
{
	record->live.thread = record->number;
	record->live.newest.tid = (uint64_t)record->tid;
	record->live.tally = record->live.newest;
	record->live.epoch = record->epoch;
	record->live.tree = (uintptr_t)incstack_stack_tree(record->stack);
	atomic_signal_fence(memory_order_seq_cst);
	record->live.magic = INCSTACK__SPOOL_RECORD_MAGIC;
}

void incstack__record_discard(struct incstack__record *record)
{
	incstack__kind->end_record(record);
	incstack_tree_release(record->tree); /* refuses null */
	incstack__record_check_destroy(record);
	incstack__own_stack_release(record);
	incstack__record_unmap(record->block, record->block_bytes);
	incstack__slot_give(record->slot);
	incstack__spool_record_release(record);
}

uint32_t incstack__record_number(void)
{
	struct incstack__recording *r = &incstack__recording;
	const uint32_t number =
		atomic_fetch_add_explicit(&r->threads_seen, 1, memory_order_seq_cst) + 1;

	if (number > 1)
		incstack__record_share();
	return number;
}
