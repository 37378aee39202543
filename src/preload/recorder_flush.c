/* SPDX-License-Identifier: MIT
 *
 * Makes blocks of what a thread has recorded: retrieve, encode, one write.
 */
#define _GNU_SOURCE
#include <time.h>

#include "recorder.h"

enum { TALLY_BYTES = sizeof(struct incstack__trace_block) + sizeof(struct incstack__trace_tally) };

/* The memory for blocks grows to what the batch and a tally take. */
static int grow_block(struct incstack__record *record, size_t bytes)
{
	void *memory;

	bytes += TALLY_BYTES;
	if (bytes <= record->block_bytes)
		return 0;
	memory = incstack__record_remap(record->block, record->block_bytes, bytes);
	if (memory == NULL)
		return -1;
	record->block = memory;
	record->block_bytes = bytes;
	return 0;
}

/* Since the record was made. Not 0: it cannot be known now. */
static int count_all(const struct incstack__record *record, struct incstack__trace_tally *tally)
{
	struct incstack_stats stats = {.size = sizeof(stats)};

	if (incstack_stack_stats(record->stack, &stats) != 0)
		return -1;
	*tally = (struct incstack__trace_tally){
		.mode = record->settled || record->walker != NULL ? incstack__recording.mode
								  : stats.mode,
		.samples = stats.samples,
		.lost = record->live.refused + stats.lost_retrieve,
		.truncated = stats.truncated + record->blurred,
		.returns = stats.returns,
		.stale = stats.stale,
		.events_dropped = record->live.dropped,
	};
	if (record->check != NULL) {
		tally->crosschecked = record->check->compared;
		tally->mismatches = record->check->mismatches;
	}
	return 0;
}

/* Its bytes; negative: it cannot be counted now. */
static int64_t put_tally(struct incstack__record *record, uint32_t flags, void *buffer)
{
	struct incstack__trace_tally tally;

	if (count_all(record, &tally) != 0)
		return -1;
	tally.flags = flags;
	record->live.newest = tally;
	return incstack__trace_tally(buffer, TALLY_BYTES, record->number, &tally);
}

void incstack__record_tally(struct incstack__record *record, uint32_t flags)
{
	unsigned char block[TALLY_BYTES];
	const int64_t used = put_tally(record, flags, block);

	if (used > 0)
		incstack__record_write(block, (size_t)used);
}

/* Its bytes; negative: it could not be made. */
static int64_t make_batch(struct incstack__record *record, const struct incstack_tree *tree,
			  uint32_t epoch)
{
	const struct incstack__trace_batch_of of = {
		.thread = record->number,
		.epoch = epoch,
		.serial = record->live.serial + 1,
	};

	if (grow_block(record, incstack__trace_batch_bytes(tree, record->log.used)) != 0)
		return INCSTACK_ENOMEM;
	return incstack__trace_batch(record->block, record->block_bytes, of, &record->log, tree);
}

/* With what has been counted so far behind it: one write for both. Not 0: there is no memory
 * for the batch, and nothing was written. */
static int write_batch(struct incstack__record *record, const struct incstack_tree *tree,
		       uint32_t epoch)
{
	const int64_t bytes = make_batch(record, tree, epoch);
	unsigned char *block = record->block;
	int64_t more;

	if (bytes < 0)
		return -1;
	more = put_tally(record, 0, block + bytes);
	incstack__record_write(block, (size_t)(bytes + (more > 0 ? more : 0)));
	return 0;
}

/* The stack has gone over to validate by itself: in the middle of an exception, or because
 * frames of a copied stack came back. */
static void heed_core(const struct incstack__record *record)
{
	struct incstack_stats stats = {.size = sizeof(stats)};

	if (incstack_stack_stats(record->stack, &stats) != 0)
		return;
	if (stats.foreign_unwinders != 0)
		incstack__record_fall_back(INCSTACK__NOTE_FOREIGN_UNWINDER);
	if (stats.revived != 0 && stats.mode == INCSTACK_MODE_VALIDATE &&
	    incstack__recording.mode == INCSTACK_MODE_PATCH)
		incstack__record_fall_back(INCSTACK__NOTE_MANY_STALE);
}

/* What is recorded from now on belongs to the epoch of now. */
static void begin_batch(struct incstack__record *record)
{
	record->epoch = __atomic_load_n(&incstack__recording.epoch, __ATOMIC_ACQUIRE);
	record->live.epoch = record->epoch;
}

/* A batch has all frames that the stack is known to have, so it should have many events
 * where the stack is deep: room for them in proportion to the bytes of the stack in use. */
static void fit_log(struct incstack__record *record)
{
	const size_t depth = incstack__record_depth(record);
	size_t bytes = INCSTACK__SPOOL_EVENT_BYTES;

	while (bytes < depth / 4 && bytes < INCSTACK__SPOOL_EVENT_BYTES_MOST)
		bytes *= 2;
	if (depth != 0 && (bytes > record->log.size || bytes <= record->log.size / 4))
		incstack__spool_log_fit(record, bytes);
}

/* What was written is not in the spool any more: first its events, which lead to the rest. A
 * kill before leaves the batch in both; its serial number tells. */
static void begin_anew(struct incstack__record *record)
{
	incstack__trace_log_clear(&record->log);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	record->live.tally = record->live.newest;
	if (record->check != NULL)
		incstack__record_check_clear(record);
	fit_log(record);
	record->live.serial++;
	record->live.tree = (uintptr_t)incstack_stack_tree(record->stack);
	begin_batch(record);
}

/* Takes the traces of the events over from the core. Not 0: it had no memory, and without
 * the traces the events' indexes would be wrong: both wait. */
static int take_tree(struct incstack__record *record)
{
	struct incstack_tree *tree = NULL;

	if (record->tree != NULL)
		return 0;
	if (incstack_retrieve(record->stack, &tree) != 0)
		return -1;
	heed_core(record);
	record->tree_epoch = incstack__record_modules_settle(record->epoch, tree, &record->blurred);
	if (record->check != NULL)
		incstack__record_check_tree(record, tree);
	record->retrieved += record->traces;
	record->traces = 0;
	record->tree = tree;
	return 0;
}

/* Without a batch: every event of the stack may have been dropped. */
static void write_losses(struct incstack__record *record)
{
	struct incstack__trace_tally now;

	if (count_all(record, &now) == 0 &&
	    (now.events_dropped != record->live.tally.events_dropped ||
	     now.lost != record->live.tally.lost))
		incstack__record_tally(record, 0);
}

static void flush(struct incstack__record *record)
{
	struct incstack_tree *tree;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	record->written_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if (record->log.used == 0 && record->traces == 0) {
		write_losses(record);
		begin_batch(record);
		return;
	}
	if (take_tree(record) != 0 || write_batch(record, record->tree, record->tree_epoch) != 0) {
		incstack__record_note(INCSTACK__NOTE_NO_MEMORY);
		return;
	}
	tree = record->tree;
	record->tree = NULL;
	begin_anew(record);
	incstack_tree_release(tree);
}

void incstack__record_flush(struct incstack__record *record)
{
	struct incstack__quiet before;

	record->look = record->quick = 0;
	if (record->walker_word == 0) /* the walk is over by now */
		record->walker_word = 1;
	incstack__record_quiet(&before);
	flush(record);
	/* Where nothing may be asked of the kernel, nothing may return to the recorder. */
	if (incstack__recording.stopping)
		record->settled = incstack_stack_set_mode(record->stack, INCSTACK_MODE_FULL) == 0;
	incstack__record_loud(&before);
}
