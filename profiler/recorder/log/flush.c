/* SPDX-License-Identifier: MIT
 *
 * Writes what a thread has recorded: it retrieves the traces, encodes a block, and makes one
 * write.
 */
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "recorder/code/code.h"
#include "recorder/log/check.h"
#include "recorder/log/log.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

enum {
	TALLY_BYTES =
		sizeof(struct incstack__tracefile_block) + sizeof(struct incstack__tracefile_tally)
};

/* Enlarges the memory for blocks so that a batch of that size and a tally fit. */
static int grow_block(struct incstack__record *record, size_t bytes)
{
	void *memory;

	bytes += TALLY_BYTES;
	if (bytes <= record->block_bytes)
		return 0;
	if (incstack__record_local.handling)
		return -1;
	memory = incstack__record_remap(record->block, record->block_bytes, bytes);
	if (!memory)
		return -1;
	record->block = memory;
	record->block_bytes = bytes;
	return 0;
}

/* Counts all events since the record was made. Returns non-zero if that is impossible now. */
static int count_all(const struct incstack__record *record, struct incstack__tracefile_tally *tally)
{
	struct incstack_stats stats = {.size = sizeof(stats)};

	if (incstack_stack_stats(record->stack, &stats) != 0)
		return -1;
	*tally = (struct incstack__tracefile_tally){
		.mode = record->no_barriers || record->walker ? incstack__recording.mode
							      : stats.mode,
		.samples = stats.samples,
		.lost = record->live.refused + stats.lost_retrieve,
		.truncated = stats.truncated + record->blurred,
		.returns = stats.returns,
		.stale = stats.stale,
		.events_dropped = record->live.dropped,
		.cpu_ns = incstack__kind->cpu_ns(record),
		.tid = (uint64_t)record->tid,
	};
	incstack__record_name(record, tally->name);
	memcpy(tally->ticks, record->live.ticks, sizeof(tally->ticks));
	if (record->check) {
		tally->crosschecked = record->check->compared;
		tally->mismatches = record->check->mismatches;
	}
	return 0;
}

/* Writes a tally to the buffer. Returns its size; negative: it cannot be counted now. */
static int64_t put_tally(struct incstack__record *record, uint32_t flags, void *buffer)
{
	struct incstack__tracefile_tally tally;

	if (count_all(record, &tally) != 0)
		return -1;
	tally.flags = flags;
	record->live.newest = tally;
	return incstack__tracefile_tally(buffer, TALLY_BYTES, record->number, &tally);
}

void incstack__record_tally(struct incstack__record *record, uint32_t flags)
{
	unsigned char block[TALLY_BYTES];
	const int64_t used = put_tally(record, flags, block);

	if (used > 0)
		incstack__record_write(block, (size_t)used);
}

/* Encodes a batch. Returns its size; negative: there is no memory. */
static int64_t make_batch(struct incstack__record *record, const struct incstack_tree *tree,
			  uint32_t epoch, struct iovec *parts)
{
	const struct incstack__tracefile_batch_of of = {
		.thread = record->number,
		.epoch = epoch,
		.serial = record->live.serial + 1,
	};

	if (grow_block(record, incstack__tracefile_batch_bytes(tree, record->log.used)) != 0)
		return INCSTACK_ENOMEM;
	return incstack__tracefile_batch_parts(record->block, record->block_bytes, of, &record->log,
					       tree, parts);
}

/* Writes a batch and a tally with one write. Returns non-zero if there is no memory for the batch;
 * nothing was written then. */
static int write_batch(struct incstack__record *record, const struct incstack_tree *tree,
		       uint32_t epoch)
{
	struct iovec parts[INCSTACK__TRACEFILE_BATCH_PARTS];
	struct iovec *last = &parts[INCSTACK__TRACEFILE_BATCH_PARTS - 1];
	int64_t more;

	if (make_batch(record, tree, epoch, parts) < 0)
		return -1;
	more = put_tally(record, 0, (unsigned char *)last->iov_base + last->iov_len);
	last->iov_len += (size_t)(more > 0 ? more : 0);
	incstack__record_write_parts(parts, INCSTACK__TRACEFILE_BATCH_PARTS);
	return 0;
}

/* If the core has changed a stack to mode validate, the recording follows. The core does so in the
 * middle of an exception, or if frames of a copied stack came back. */
static void follow_mode_of_core(const struct incstack__record *record)
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

/* Begins a batch in the current epoch. acquire: pairs with the release of the epoch's store in
 * end_epoch (unload.c). */
static void begin_batch(struct incstack__record *record)
{
	record->epoch = atomic_load_explicit(&incstack__recording.epoch, memory_order_acquire);
	record->live.epoch = record->epoch;
}

/* Adapts the room for events. A batch contains all known frames of the stack, so a batch of a deep
 * stack should have many events. The room is proportional to the bytes of the stack in use. */
static void fit_log(struct incstack__record *record)
{
	const size_t depth = incstack__record_depth(record);
	size_t bytes = INCSTACK__SPOOL_EVENT_BYTES;

	while (bytes < depth / 4 && bytes < INCSTACK__SPOOL_EVENT_BYTES_MOST)
		bytes *= 2;
	if (depth != 0 && !incstack__kind->samples_in_handlers &&
	    (bytes > record->log.size || bytes <= record->log.size / 4))
		incstack__spool_log_fit(record, bytes);
}

/* Removes from the spool what was written to the file. The events go first, because they lead to
 * the rest. A kill before that leaves the batch both in the spool and in the trace file; readers
 * recognize it by its serial number. */
static void begin_anew(struct incstack__record *record)
{
	incstack__tracefile_log_clear(&record->log);
	atomic_signal_fence(memory_order_seq_cst);
	record->live.tally = record->live.newest;
	if (record->check)
		incstack__record_check_clear(record);
	fit_log(record);
	record->live.serial++;
	record->live.tree = (uintptr_t)incstack_stack_tree(record->stack);
	begin_batch(record);
}

/* Retrieves the traces of the events from the core. Returns non-zero if the core had no memory, or
 * if a signal handler has interrupted a return that the core intercepts (INCSTACK_EBUSY). Without
 * the traces, the indexes in the events would be wrong, so the events also wait. */
static int take_tree(struct incstack__record *record)
{
	struct incstack_tree *tree = NULL;
	int error;

	if (record->tree)
		return 0;
	error = incstack_stack_retrieve(record->stack, &tree);
	if (error != 0)
		return error;
	follow_mode_of_core(record);
	record->tree_epoch = incstack__record_modules_settle(record->epoch, tree, &record->blurred);
	if (record->check)
		incstack__record_check_tree(record, tree);
	record->retrieved += record->traces;
	record->traces = 0;
	record->tree = tree;
	return 0;
}

static bool is_news(const struct incstack__tracefile_tally *before,
		    const struct incstack__tracefile_tally *now)
{
	return now->events_dropped != before->events_dropped || now->lost != before->lost ||
	       now->cpu_ns != before->cpu_ns ||
	       memcmp(now->name, before->name, sizeof(now->name)) != 0;
}

/* Writes a tally without a batch if there are new losses, a new name, or CPU time in which the
 * timer never ticked. If every event was dropped, or if the batch cannot be written, there is no
 * batch. */
static void write_news(struct incstack__record *record)
{
	const struct incstack__tracefile_tally before = record->live.newest;
	unsigned char block[TALLY_BYTES];
	const int64_t used = put_tally(record, 0, block);

	if (used > 0 && is_news(&before, &record->live.newest))
		incstack__record_write(block, (size_t)used);
}

static void flush(struct incstack__record *record)
{
	struct incstack_tree *tree;
	struct timespec now;
	int error;

	incstack__clock(CLOCK_MONOTONIC_COARSE, &now);
	record->written_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if (record->log.used == 0 && record->traces == 0) {
		write_news(record);
		begin_batch(record);
		return;
	}
	error = take_tree(record);
	if (error != 0 || write_batch(record, record->tree, record->tree_epoch) != 0) {
		/* The next call tries again to write a handler's batch, or a batch that waits for a
		 * return. */
		if (!incstack__record_local.handling && error != INCSTACK_EBUSY) {
			incstack__record_note(INCSTACK__NOTE_NO_MEMORY);
			write_news(record); /* events are dropped while the batch waits */
		}
		return;
	}
	tree = record->tree;
	record->tree = NULL;
	begin_anew(record);
	incstack_tree_release(tree);
	if (record->batch_room != 0 && incstack__recording.on)
		incstack_stack_reserve(record->stack, INCSTACK__RESERVE_BYTES + record->batch_room);
}

void incstack__record_flush(struct incstack__record *record)
{
	struct incstack__protection before;

	record->look = record->quick = 0;
	if (record->walker_word == 0) /* the walk counts as over: see still_walks */
		record->walker_word = 1;
	incstack__record_protect(&before);
	flush(record);
	/* In a sandbox no system call may be made, so no return may lead into the recorder. */
	if (incstack__recording.stopping)
		record->no_barriers =
			incstack_stack_set_mode(record->stack, INCSTACK_MODE_FULL) == 0;
	incstack__record_unprotect(&before);
}
