/* SPDX-License-Identifier: MIT
 *
 * Reads a trace file; see read.h. To open a file, the reader finds all of its blocks: it reads the
 * lists of modules, adds up the tallies, and notes where the batches are. Then it merges the events
 * of the threads. Each thread has a cursor in its batches. The cursors are a heap, at whose root is
 * the cursor with the smallest stamp. A batch is decoded when its cursor reaches it.
 */
#include <stdlib.h>

#include "internal.h"
#include "notes.h"
#include "packed.h"

struct block_ref {
	uint64_t offset;
	uint32_t thread;
};

struct block_refs {
	struct block_ref *refs;
	size_t count;
};

/* The position of one thread in its batches. */
struct cursor {
	size_t next_batch;
	size_t end_batch;
	uint32_t serial; /* of its last batch */
	int waits;       /* no batch was decoded; only event.stamp is known */
	struct incstack__tracefile_event event; /* the next; its stamp is the key in the heap */
	struct incstack__tracefile_chunk chunk;
};

struct incstack__tracefile_reader {
	const unsigned char *data;
	size_t size;
	struct incstack__tracefile_unpacked unpacked; /* or the file itself: what `data` is */
	struct incstack__tracefile_header header;
	struct incstack__tracefile_problem problem;
	struct incstack__tracefile_totals totals;
	struct incstack__tracefile_modules_table modules;
	struct incstack__tracefile_threads threads;
	struct incstack__moment moment; /* the newest */
	struct incstack__resolved resolved;
	struct block_refs batches;
	struct block_refs tallies;
	struct cursor *cursors;
	struct cursor **heap; /* the smallest stamp first */
	size_t heap_count;
	size_t cursor_count;
	int merging;
};

static void note_damage(struct incstack__tracefile_reader *reader, const char *what,
			uint64_t offset)
{
	reader->totals.damaged++;
	if (!reader->problem.what)
		reader->problem = (struct incstack__tracefile_problem){what, offset};
}

/* ---- the header and its counters ------------------------------------------- */

/* `damaged` is the offset of the first damaged slot, or 0. */
static void read_slots(struct incstack__tracefile_reader *reader)
{
	const uint64_t damaged = incstack__tracefile_slots_read(reader->data, &reader->totals);

	if (damaged != 0)
		reader->problem =
			(struct incstack__tracefile_problem){"a counter slot is damaged", damaged};
}

/* ---- blocks ------------------------------------------------------------------ */

static const char *note_block(struct block_refs *refs, uint32_t thread, uint64_t offset)
{
	const size_t count = refs->count;
	struct block_ref *grown = refs->refs;

	if ((count & (count - 1)) == 0)
		grown = realloc(grown, (count == 0 ? 1 : 2 * count) * sizeof(*grown));
	if (!grown)
		return incstack__tracefile_no_memory;
	refs->refs = grown;
	refs->refs[refs->count++] = (struct block_ref){offset, thread};
	return NULL;
}

static const char *read_block(struct incstack__tracefile_reader *reader,
			      const struct incstack__tracefile_block *block, uint64_t offset)
{
	const unsigned char *payload = reader->data + offset + sizeof(*block);

	if (block->checksum != incstack__tracefile_block_sum(*block, payload))
		return "the checksum of a block is wrong";
	reader->totals.blocks++;
	switch (block->type) {
	case INCSTACK__TRACEFILE_MODULES:
		return incstack__tracefile_modules_read(&reader->modules, payload, block->length);
	case INCSTACK__TRACEFILE_BATCH:
		return note_block(&reader->batches, block->thread, offset);
	case INCSTACK__TRACEFILE_TALLY:
		if (block->length != sizeof(struct incstack__tracefile_tally))
			return "a tally has the wrong size";
		return note_block(&reader->tallies, block->thread, offset);
	case INCSTACK__TRACEFILE_MOMENT:
		return incstack__moment_replace(&reader->moment, payload, block->length);
	case INCSTACK__TRACEFILE_RESOLVED:
		return incstack__resolved_read(&reader->resolved, payload, block->length);
	default:
		return "a block has an unknown type";
	}
}

/* Finds all blocks. The search ends at a damaged block, because a wrong length would lead into the
 * middle of another block. A list with too many modules is only incomplete, so the search goes
 * on. */
static int scan_blocks(struct incstack__tracefile_reader *reader)
{
	struct incstack__tracefile_block block;
	uint64_t offset = INCSTACK__TRACEFILE_START;
	const char *problem;

	for (; offset < reader->size; offset += sizeof(block) + block.length) {
		const uint64_t left = reader->size - offset;

		memset(&block, 0, sizeof(block));
		memcpy(&block, reader->data + offset, left < sizeof(block) ? left : sizeof(block));
		if (left >= sizeof(block) && block.magic != INCSTACK__TRACEFILE_BLOCK_MAGIC) {
			note_damage(reader, "no block where one should start", offset);
			return 0;
		}
		if (left < sizeof(block) || block.length > left - sizeof(block)) {
			reader->totals.truncated_bytes += left;
			return 0;
		}
		problem = read_block(reader, &block, offset);
		if (problem == incstack__tracefile_no_memory)
			return INCSTACK_ENOMEM;
		if (problem)
			note_damage(reader, problem, offset);
		if (problem && problem != incstack__tracefile_too_many)
			return 0;
	}
	return 0;
}

static int by_thread(const void *a, const void *b)
{
	const struct block_ref *left = a;
	const struct block_ref *right = b;

	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	return left->offset < right->offset ? -1 : left->offset > right->offset;
}

static void sort_by_thread(struct block_refs *refs)
{
	if (refs->count > 1)
		qsort(refs->refs, refs->count, sizeof(*refs->refs), by_thread);
}

/* ---- tallies ------------------------------------------------------------------ */

static int add_tally(struct incstack__tracefile_reader *reader, const struct block_ref *ref)
{
	struct incstack__tracefile_tally tally;

	memcpy(&tally, reader->data + ref->offset + sizeof(struct incstack__tracefile_block),
	       sizeof(tally));
	incstack__tracefile_tally_add(&reader->totals, &tally);
	return incstack__tracefile_threads_add(&reader->threads, ref->thread, &tally);
}

/* Adds up the last tally of each thread, because a thread's counters only grow. */
static int add_tallies(struct incstack__tracefile_reader *reader)
{
	const struct block_refs *refs = &reader->tallies;
	int error = 0;

	reader->totals.tally.mode = reader->header.mode;
	sort_by_thread(&reader->tallies);
	for (size_t i = 0; i < refs->count && error == 0; i++)
		if (i + 1 == refs->count || refs->refs[i + 1].thread != refs->refs[i].thread)
			error = add_tally(reader, &refs->refs[i]);
	return error != 0 ? error : incstack__tracefile_threads_group(&reader->threads);
}

/* ---- the merge --------------------------------------------------------------- */

static void heap_sink(struct incstack__tracefile_reader *reader, size_t at)
{
	struct cursor **heap = reader->heap;

	for (;;) {
		size_t least = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
			if (child < reader->heap_count &&
			    heap[child]->event.stamp < heap[least]->event.stamp)
				least = child;
		if (least == at)
			return;
		struct cursor *moved = heap[at];
		heap[at] = heap[least];
		heap[least] = moved;
		at = least;
	}
}

/* Whether a batch came before. A process may be killed after it has written a batch and before its spool says so. Then the
 * spool still has its events, and the spool's reader makes it again. A process that still runs may write even more. */
static bool is_repeated(struct cursor *cursor, const unsigned char *payload, size_t length)
{
	struct incstack__tracefile_batch batch;
	const uint32_t last = cursor->serial;

	if (length < sizeof(batch))
		return false;
	memcpy(&batch, payload, sizeof(batch));
	if (batch.serial > last)
		cursor->serial = batch.serial;
	return batch.serial != 0 && batch.serial <= last;
}

/* Decodes the thread's next batch into its chunk. A repeated or a damaged batch adds no events.
 * `last` and `latest` belong to the user of the chunk, and are kept from batch to batch. */
static int load_batch(struct incstack__tracefile_reader *reader, struct cursor *cursor)
{
	const struct block_ref *ref = &reader->batches.refs[cursor->next_batch++];
	struct incstack__tracefile_block block;
	const uint32_t last = cursor->chunk.last;
	const uint64_t latest = cursor->chunk.latest;
	const char *problem;

	memcpy(&block, reader->data + ref->offset, sizeof(block));
	if (is_repeated(cursor, reader->data + ref->offset + sizeof(block), block.length)) {
		reader->totals.repeated++;
		return 0;
	}
	incstack__tracefile_chunk_free(&cursor->chunk);
	problem = incstack__tracefile_chunk_read(&cursor->chunk, &reader->modules,
						 reader->data + ref->offset + sizeof(block),
						 block.length);
	if (problem)
		incstack__tracefile_chunk_free(&cursor->chunk);
	cursor->chunk.thread = ref->thread;
	cursor->chunk.last = last;
	cursor->chunk.latest = latest;
	if (!problem) {
		incstack__tracefile_chunk_count(&cursor->chunk, &reader->totals);
		return 0;
	}
	if (problem == incstack__tracefile_no_memory)
		return INCSTACK_ENOMEM;
	note_damage(reader, problem, ref->offset);
	return 0;
}

/* Reads the next event of a thread into cursor->event. Returns 1, 0 if there is none, or
 * INCSTACK_ENOMEM. */
static int cursor_settle(struct incstack__tracefile_reader *reader, struct cursor *cursor)
{
	struct incstack__tracefile_chunk *chunk = &cursor->chunk;

	for (;;) {
		int taken = 0; /* 0: a time word; below 0: the file has changed since the check */

		while (chunk->place.at < chunk->event_end && taken >= 0) {
			taken = incstack__tracefile_event_take(chunk, &chunk->place,
							       &cursor->event);
			if (taken > 0)
				return 1;
		}
		if (cursor->next_batch == cursor->end_batch) {
			incstack__tracefile_chunk_free(chunk);
			return 0;
		}
		if (load_batch(reader, cursor) != 0)
			return INCSTACK_ENOMEM;
	}
}

/* Reads only the stamp of a thread's first event. The batch is decoded when the merge reaches this
 * event, because there may have been many short-lived threads. */
static int cursor_wait(const struct incstack__tracefile_reader *reader, struct cursor *cursor)
{
	const unsigned char *at = reader->data + reader->batches.refs[cursor->next_batch].offset;
	struct incstack__tracefile_block block;

	memcpy(&block, at, sizeof(block));
	cursor->waits = incstack__tracefile_chunk_begin(at + sizeof(block), block.length,
							&cursor->event.stamp);
	return cursor->waits;
}

static size_t make_cursors(struct incstack__tracefile_reader *reader)
{
	const struct block_ref *refs = reader->batches.refs;
	size_t threads = 0;

	for (size_t i = 0; i < reader->batches.count; i++) {
		if (i > 0 && refs[i].thread == refs[i - 1].thread) {
			reader->cursors[threads - 1].end_batch = i + 1;
			continue;
		}
		reader->cursors[threads++] = (struct cursor){.next_batch = i, .end_batch = i + 1};
	}
	return threads;
}

static int start_merge(struct incstack__tracefile_reader *reader)
{
	const size_t room = reader->batches.count + 1;

	reader->merging = 1;
	sort_by_thread(&reader->batches);
	reader->cursors = calloc(room, sizeof(*reader->cursors));
	reader->heap = calloc(room, sizeof(struct cursor *));
	if (!reader->cursors || !reader->heap)
		return INCSTACK_ENOMEM;
	reader->cursor_count = make_cursors(reader);
	reader->totals.threads = reader->cursor_count;
	for (size_t i = 0; i < reader->cursor_count; i++) {
		struct cursor *cursor = &reader->cursors[i];
		const int settled = cursor_wait(reader, cursor) ? 1 : cursor_settle(reader, cursor);

		if (settled < 0)
			return settled;
		if (settled)
			reader->heap[reader->heap_count++] = cursor;
	}
	for (size_t i = reader->heap_count; i-- > 0;)
		heap_sink(reader, i);
	return 0;
}

static void hand_out(struct cursor *cursor, struct incstack__tracefile_event *event)
{
	*event = cursor->event;
	event->thread = cursor->chunk.thread;
	event->chunk = &cursor->chunk;
}

/* Advances the cursor at the root of the heap, whose event was handed out and becomes invalid. If
 * the cursor waits, this decodes the thread's first batch and finds its first event. */
static int settle_root(struct incstack__tracefile_reader *reader)
{
	const int settled = cursor_settle(reader, reader->heap[0]);

	reader->heap[0]->waits = 0;
	if (settled == 0)
		reader->heap[0] = reader->heap[--reader->heap_count];
	if (settled >= 0)
		heap_sink(reader, 0);
	return settled < 0 ? settled : 0;
}

int incstack__tracefile_next(struct incstack__tracefile_reader *reader,
			     struct incstack__tracefile_event *event)
{
	int error = 0;

	if (!reader || !event)
		return INCSTACK_EINVAL;
	if (!reader->merging)
		error = start_merge(reader);
	else if (reader->heap_count > 0)
		error = settle_root(reader);
	while (error == 0 && reader->heap_count > 0 && reader->heap[0]->waits)
		error = settle_root(reader);
	if (error != 0)
		reader->heap_count = 0;
	if (reader->heap_count == 0)
		return error;
	hand_out(reader->heap[0], event);
	return 1;
}

/* ---- open and close ------------------------------------------------------------ */

/* What a packed file lost is reported like the same of another file. */
static void note_unpacked(struct incstack__tracefile_reader *reader)
{
	const struct incstack__tracefile_unpacked *unpacked = &reader->unpacked;

	reader->totals.truncated_bytes += unpacked->cut;
	if (unpacked->what != NULL)
		note_damage(reader, unpacked->what, unpacked->offset);
}

int incstack__tracefile_open(const void *data, size_t size, struct incstack__tracefile_reader **out,
			     struct incstack__tracefile_problem *problem)
{
	struct incstack__tracefile_reader *reader;

	if ((!data && size > 0) || !out || !problem)
		return INCSTACK_EINVAL;
	*problem = (struct incstack__tracefile_problem){0};
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return INCSTACK_ENOMEM;
	if (incstack__tracefile_unpack(data, size, &reader->unpacked) != 0) {
		incstack__tracefile_close(reader);
		return INCSTACK_ENOMEM;
	}
	reader->data = reader->unpacked.data;
	reader->size = reader->unpacked.size;
	problem->what =
		incstack__tracefile_header_check(reader->data, reader->size, &reader->header);
	if (problem->what != NULL) {
		if (reader->unpacked.what != NULL)
			*problem = (struct incstack__tracefile_problem){reader->unpacked.what,
									reader->unpacked.offset};
		incstack__tracefile_close(reader);
		return INCSTACK_EINVAL;
	}
	read_slots(reader);
	note_unpacked(reader);
	if (scan_blocks(reader) != 0 || add_tallies(reader) != 0) {
		incstack__tracefile_close(reader);
		return INCSTACK_ENOMEM;
	}
	*out = reader;
	return 0;
}

void incstack__tracefile_close(struct incstack__tracefile_reader *reader)
{
	if (!reader)
		return;
	for (size_t i = 0; i < reader->cursor_count; i++)
		incstack__tracefile_chunk_free(&reader->cursors[i].chunk);
	incstack__tracefile_modules_free(&reader->modules);
	free(reader->threads.all);
	incstack__moment_free(&reader->moment);
	free(reader->cursors);
	free(reader->heap);
	free(reader->batches.refs);
	free(reader->tallies.refs);
	free(reader->unpacked.owned);
	free(reader);
}

const struct incstack__tracefile_header *
incstack__tracefile_reader_header(const struct incstack__tracefile_reader *reader)
{
	return &reader->header;
}

const struct incstack__tracefile_totals *
incstack__tracefile_reader_totals(const struct incstack__tracefile_reader *reader)
{
	return &reader->totals;
}

const struct incstack__moment *
incstack__tracefile_reader_moment(const struct incstack__tracefile_reader *reader)
{
	return reader->moment.areas != NULL ? &reader->moment : NULL;
}

const struct incstack__resolved *
incstack__tracefile_reader_resolved(const struct incstack__tracefile_reader *reader)
{
	return &reader->resolved;
}

struct incstack__tracefile_problem
incstack__tracefile_reader_problem(const struct incstack__tracefile_reader *reader)
{
	return reader->problem;
}

const struct incstack__tracefile_thread *
incstack__tracefile_reader_thread(const struct incstack__tracefile_reader *reader, uint32_t number)
{
	return incstack__tracefile_threads_find(&reader->threads, number);
}

const char *incstack__tracefile_reader_name(const struct incstack__tracefile_reader *reader,
					    uint64_t group)
{
	return group < reader->threads.count ? reader->threads.all[group].name : "";
}

const struct incstack__tracefile_module_info *
incstack__tracefile_code_module(const struct incstack__tracefile_reader *reader, uint64_t code,
				uint64_t *pc, int *exact)
{
	return incstack__tracefile_modules_of(&reader->modules, code, pc, exact);
}
