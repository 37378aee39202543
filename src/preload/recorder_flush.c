/* SPDX-License-Identifier: MIT
 *
 * Makes blocks of what a thread has recorded: retrieve, encode, one write.
 */
#define _GNU_SOURCE
#include <time.h>

#include "recorder.h"

static int grow_scratch(struct incstack__record *record, size_t bytes)
{
	if (bytes <= record->scratch_bytes)
		return 0;
	incstack__record_unmap(record->scratch, record->scratch_bytes);
	record->scratch_bytes = 0;
	record->scratch = incstack__record_map(bytes);
	if (record->scratch == NULL)
		return -1;
	record->scratch_bytes = bytes;
	return 0;
}

/* Each event takes at least a word, so this is what is lost at most. */
static void drop(struct incstack__record *record)
{
	record->dropped += record->log.used / INCSTACK__TRACE_FREE_BYTES;
	incstack__trace_log_clear(&record->log);
}

/* What a thread recorded before code went away belongs to the epoch that ended
 * then. Otherwise code that was loaded since is described first. */
static uint32_t epoch_of(struct incstack__record *record)
{
	struct incstack__recording *r = &incstack__recording;
	uint32_t epoch;

	if (record->unloads != __atomic_load_n(&r->unloads, __ATOMIC_ACQUIRE)) {
		record->unloads = r->unloads;
		return r->closed;
	}
	pthread_mutex_lock(&r->lock);
	incstack__record_modules(record->number);
	epoch = r->epoch;
	pthread_mutex_unlock(&r->lock);
	return epoch;
}

static void write_batch(struct incstack__record *record, const struct incstack_tree *tree)
{
	const size_t bytes = incstack__trace_batch_bytes(tree, record->log.used);
	int64_t used;

	if (grow_scratch(record, bytes) != 0) {
		drop(record);
		return;
	}
	used = incstack__trace_batch(record->scratch, record->scratch_bytes, record->number,
				     epoch_of(record), tree, &record->log);
	if (used < 0 || incstack__record_write(record->scratch, (size_t)used) != 0)
		drop(record);
}

static void flush(struct incstack__record *record)
{
	struct incstack_tree *tree = NULL;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	record->written_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if (record->log.used == 0 && record->traces == 0)
		return;
	/* Without the traces the events' indexes would be wrong: both wait. */
	if (incstack_retrieve(record->stack, &tree) != 0)
		return;
	if (record->check != NULL)
		incstack__record_check_tree(record, tree);
	write_batch(record, tree);
	incstack_tree_release(tree);
	record->retrieved += record->traces;
	record->traces = 0;
	incstack__record_tally(record, 0);
}

void incstack__record_flush(struct incstack__record *record)
{
	struct incstack__quiet before;

	record->look = record->quick = 0;
	incstack__record_quiet(&before);
	flush(record);
	incstack__record_loud(&before);
}

/* Since the record was made. Not 0: it cannot be known now. */
static int count_all(const struct incstack__record *record, struct incstack__trace_tally *tally)
{
	struct incstack_stats stats = {.size = sizeof(stats)};

	if (incstack_stack_stats(record->stack, &stats) != 0)
		return -1;
	*tally = (struct incstack__trace_tally){
		.mode = record->settled ? incstack__recording.mode : stats.mode,
		.samples = stats.samples,
		.lost = record->refused + stats.lost_retrieve,
		.truncated = stats.truncated,
		.returns = stats.returns,
		.stale = stats.stale,
		.events_dropped = record->dropped,
	};
	if (record->check != NULL) {
		tally->crosschecked = record->check->compared;
		tally->mismatches = record->check->mismatches;
	}
	return 0;
}

void incstack__record_tally_reset(struct incstack__record *record)
{
	count_all(record, &record->base);
}

void incstack__record_tally(struct incstack__record *record, uint32_t flags)
{
	const struct incstack__trace_tally *base = &record->base;
	struct incstack__trace_tally tally;
	unsigned char block[256];
	int64_t used;

	if (count_all(record, &tally) != 0)
		return;
	tally.flags = flags;
	tally.samples -= base->samples;
	tally.lost -= base->lost;
	tally.truncated -= base->truncated;
	tally.returns -= base->returns;
	tally.stale -= base->stale;
	tally.events_dropped -= base->events_dropped;
	tally.crosschecked -= base->crosschecked;
	tally.mismatches -= base->mismatches;
	used = incstack__trace_tally(block, sizeof(block), record->number, &tally);
	if (used > 0)
		incstack__record_write(block, (size_t)used);
}
