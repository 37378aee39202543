/* SPDX-License-Identifier: MIT
 *
 * Turns a spool into blocks; see spool_read.h. Each record of the spool becomes a batch, if it has
 * events, and a tally. An address of the process becomes a pointer into the memory that the spool
 * was read into, if the address lies in one of the segments, and null otherwise. Frame objects are
 * changed in place. They cannot overlap, because each lies at a multiple of its size. Traces are
 * copied.
 *
 * seen[] finds out where a trace meets objects that were visited before. Each trace has its own
 * mark, which it leaves at each object that it visits. A mark of another trace of the record tells
 * that the outer callers were visited already. The trace's own mark tells that the chain is a ring.
 */
#include <stdlib.h>
#include <string.h>

#include "spool_read.h"
#include "internal.h"
#include "write.h"
#include "walks.h"

typedef struct incstack_frame_object object;
typedef struct incstack_trace trace;

enum {
	OBJECT_BYTES = sizeof(object),
	EVENTS_AT = INCSTACK__SPOOL_RECORD_BYTES,
	RECORD_BYTES = INCSTACK__SPOOL_RECORD_BYTES + INCSTACK__SPOOL_EVENT_BYTES,
	/* The maximum number of traces per word of room for events. It is higher than the maximum
	 * number of events, because some traces have no event. */
	TRACES_A_WORD = 4,
};

struct spool {
	unsigned char *data;
	size_t bytes;
	struct incstack__spool_header header;
	uint32_t
		*seen; /* for each place of an object: the mark of the last trace that visited it */
	uint32_t mark; /* the mark of the trace that is visited now */
	uint32_t marks_before; /* marks up to this mark are of other records, and count as 0 */
	object *gaps;          /* objects made here, for callers that were not walked */
	size_t gap_count;
	size_t gap_room;
	int pending;   /* whether a thread has events */
	size_t events; /* bytes of the events of all records so far */
	unsigned char *out;
	size_t out_bytes;
};

/* What was found in one record. */
struct found {
	struct incstack__spool_live live;
	struct incstack__tracefile_log log;
	trace *traces;
	struct incstack_tree tree;
	uint64_t compared; /* how many of these traces were compared with walks of --crosscheck */
	uint64_t mismatches;
};

uint64_t incstack__tracefile_end(const unsigned char *data, uint64_t size)
{
	uint64_t at = INCSTACK__TRACEFILE_START;
	struct incstack__tracefile_block block;

	while (at < size && size - at >= sizeof(block)) {
		memcpy(&block, data + at, sizeof(block));
		if (block.magic != INCSTACK__TRACEFILE_BLOCK_MAGIC ||
		    block.length > size - at - sizeof(block))
			break;
		at += sizeof(block) + block.length;
	}
	return at < size ? at : size;
}

const struct incstack__spool_header *
incstack__spool_header(const void *spool, size_t bytes, const struct incstack__tracefile_header *of)
{
	const struct incstack__spool_header *header = spool;

	if (bytes < INCSTACK__SPOOL_HEADER_BYTES || header->magic != INCSTACK__SPOOL_MAGIC ||
	    header->version != INCSTACK__SPOOL_VERSION || header->pid != of->pid ||
	    header->start_ns != of->start_ns)
		return NULL;
	return header;
}

/* Returns a pointer to the bytes that the process had at an address, or null unless all of them lie
 * in the spool. */
static void *at_address(const struct spool *spool, uint64_t address, size_t bytes, size_t unit)
{
	if (address % unit != 0)
		return NULL;
	for (uint32_t i = 0; i < spool->header.segments; i++) {
		const struct incstack__spool_segment *s = &spool->header.segment[i];
		const uint64_t inside = address - s->address;

		if (inside >= s->bytes || s->bytes - inside < bytes)
			continue;
		if (s->offset > spool->bytes || spool->bytes - s->offset < s->bytes ||
		    s->offset % INCSTACK__SPOOL_HEADER_BYTES != 0 ||
		    s->address % INCSTACK__SPOOL_HEADER_BYTES != 0)
			return NULL;
		return spool->data + s->offset + inside;
	}
	return NULL;
}

static object *object_at(const struct spool *spool, const void *address)
{
	return at_address(spool, (uintptr_t)address, OBJECT_BYTES, OBJECT_BYTES);
}

static uint32_t *seen_of(const struct spool *spool, const object *o)
{
	return &spool->seen[(size_t)((const unsigned char *)o - spool->data) / OBJECT_BYTES];
}

/* Makes an object that stands for callers that were not walked. Its parent is the next caller that
 * is known, or null. Returns null if the array is full. The array must not move, so it has room for
 * as many objects as there can be. */
static object *add_gap(struct spool *spool, const object *parent)
{
	object *gap = spool->gap_count < spool->gap_room ? &spool->gaps[spool->gap_count++] : NULL;

	if (gap)
		*gap = (object){parent, INCSTACK__TRACEFILE_GAP_PC, 0, -1, INCSTACK_OBJECT_FILLED};
	return gap;
}

/* Makes the object the last of its chain. Its callers are unknown from now on. */
static void truncate_at(object *o)
{
	o->parent = NULL;
	o->flags = (o->flags & ~(uint32_t)INCSTACK_OBJECT_BASE) | INCSTACK_OBJECT_TRUNCATED;
}

/* Visits an object for the first time, and changes it so that the encoder can read it. Returns its
 * caller if the caller must also be visited, else null. A chain that leads back to itself is
 * cut. */
static object *visit(struct spool *spool, struct found *found, object *o)
{
	const uint32_t kept = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_EXACT |
			      INCSTACK_OBJECT_BASE | INCSTACK_OBJECT_TRUNCATED |
			      INCSTACK_OBJECT_SIGNAL;
	object *parent = o->parent ? object_at(spool, o->parent) : NULL;
	const int gap = (o->flags & INCSTACK_OBJECT_GAP) != 0;
	uint32_t before;

	*seen_of(spool, o) = spool->mark;
	found->tree.objects++;
	o->flags &= kept;
	o->position = -1;
	before = parent ? *seen_of(spool, parent) : 0;
	before = before > spool->marks_before ? before : 0;
	if (!parent || before == spool->mark) { /* or the chain is a ring */
		if (!(o->flags & INCSTACK_OBJECT_BASE) || o->parent)
			truncate_at(o);
		return NULL;
	}
	o->flags &= ~(uint32_t)(INCSTACK_OBJECT_BASE | INCSTACK_OBJECT_TRUNCATED);
	o->parent = parent;
	if (gap) {
		o->parent = add_gap(spool, parent);
		found->tree.objects++;
		if (!o->parent)
			truncate_at(o);
	}
	return before != 0 || !o->parent ? NULL : parent;
}

/* Copies the next trace. If `from` is null or its top is not a valid object, the trace gets a gap
 * as its only object, so that the traces after it keep their indices. */
static void add_trace(struct spool *spool, struct found *found, const trace *from)
{
	trace *t = &found->traces[found->tree.count];
	object *top = from ? object_at(spool, from->top) : NULL;

	spool->mark++;
	for (object *o = top; o && *seen_of(spool, o) <= spool->marks_before;)
		o = visit(spool, found, o);
	if (!top) {
		top = add_gap(spool, NULL);
		found->tree.objects++;
	}
	if (!top)
		return;
	*t = (trace){.top = top};
	if (found->tree.count > 0)
		t[-1].next = t;
	found->tree.count++;
}

/* Returns how many traces the events refer to. Ends the log before a malformed event. */
static uint64_t count_traces(struct found *found)
{
	const size_t most = TRACES_A_WORD * found->log.size / INCSTACK__TRACEFILE_WORD_BYTES;
	const struct incstack__tracefile_chunk chunk = {
		.event_end = found->log.data + found->log.used, .traces = (uint32_t)most};
	struct incstack__tracefile_place place = {.at = found->log.data};
	struct incstack__tracefile_event event;
	uint64_t count = 0;
	int taken;

	while (place.at < chunk.event_end) {
		const unsigned char *before = place.at;

		taken = incstack__tracefile_event_take(&chunk, &place, &event);
		if (taken < 0) {
			found->log.used = (size_t)(before - found->log.data);
			break;
		}
		if (taken > 0 && event.trace != INCSTACK__TRACEFILE_NO_TRACE &&
		    event.trace >= count)
			count = event.trace + 1;
	}
	return count;
}

static void find_traces(struct spool *spool, struct found *found, uint64_t count)
{
	const struct incstack_tree *tree =
		at_address(spool, found->live.tree, sizeof(*tree), sizeof(uint64_t));
	const trace *next = tree ? tree->traces : NULL;

	while (found->tree.count < count) {
		const uint64_t before = found->tree.count;
		const trace *t = at_address(spool, (uintptr_t)next, sizeof(*t), sizeof(uint64_t));

		next = t ? t->next : NULL;
		add_trace(spool, found, t);
		if (found->tree.count == before)
			return;
	}
	found->tree.traces = count > 0 ? found->traces : NULL;
}

static int grow(struct spool *spool, size_t bytes)
{
	unsigned char *out = realloc(spool->out, spool->out_bytes + bytes);

	if (!out)
		return INCSTACK_ENOMEM;
	spool->out = out;
	return 0;
}

static int put_batch(struct spool *spool, struct found *found)
{
	const struct incstack__spool_live *live = &found->live;
	const struct incstack__tracefile_batch_of of = {
		.thread = live->thread,
		.epoch = live->epoch,
		.serial = live->serial + 1,
	};
	const size_t room = incstack__tracefile_batch_bytes(&found->tree, found->log.used);
	int64_t used;

	if (grow(spool, room) != 0)
		return INCSTACK_ENOMEM;
	used = incstack__tracefile_batch(spool->out + spool->out_bytes, room, of, &found->log,
					 &found->tree);
	if (used > 0)
		spool->out_bytes += (size_t)used;
	return used < 0 ? (int)used : 0;
}

/* Writes the tally. If there are no events, it begins with the newest tally. If there are events,
 * it begins with the tally before them, because the newest tally may already include them. Then it
 * adds what was recovered. Only the shared record has the flag EXEC. Its tally is the last, because
 * the list begins with the newest record. */
static int put_tally(struct spool *spool, const struct found *found)
{
	struct incstack__tracefile_tally tally =
		found->log.used != 0 ? found->live.tally : found->live.newest;
	const size_t room = sizeof(struct incstack__tracefile_block) + sizeof(tally);
	int64_t used;

	if (grow(spool, room) != 0)
		return INCSTACK_ENOMEM;
	if (spool->pending)
		tally.flags &= ~(uint32_t)INCSTACK__TRACEFILE_TALLY_EXEC; /* the exec failed */
	tally.flags |= INCSTACK__TRACEFILE_TALLY_RECOVERED;
	tally.samples += found->tree.count;
	tally.crosschecked += found->compared;
	tally.mismatches += found->mismatches;
	tally.lost = found->live.refused;
	tally.events_dropped = found->live.dropped;
	memcpy(tally.ticks, found->live.ticks, sizeof(tally.ticks));
	used = incstack__tracefile_tally(spool->out + spool->out_bytes, room, found->live.thread,
					 &tally);
	spool->out_bytes += used > 0 ? (size_t)used : 0;
	return 0;
}

static void compare(const struct spool *spool, struct found *found)
{
	const struct incstack__spool_live *live = &found->live;
	struct incstack__walks walks = {.count = live->walk_count};

	if (live->walk_bytes <= INCSTACK__SPOOL_WALK_BYTES_MOST)
		walks.words = at_address(spool, live->walks, live->walk_bytes, sizeof(uint64_t));
	if (!walks.words)
		return;
	walks.size = live->walk_bytes / sizeof(uint64_t);
	incstack__walks_compare(&walks, &found->tree, &found->compared, &found->mismatches);
}

static int recover_events(struct spool *spool, struct found *found)
{
	const uint64_t count = count_traces(found);
	int error;

	if (found->log.used == 0)
		return 0;
	spool->pending = 1;
	found->traces = calloc(count + 1, sizeof(*found->traces));
	/* Each object may have a gap behind it, and each trace may have a gap instead of a top. */
	spool->gap_room = spool->bytes / OBJECT_BYTES + count;
	spool->gaps = calloc(spool->gap_room, sizeof(*spool->gaps));
	spool->gap_count = 0;
	spool->marks_before = spool->mark;
	error = !found->traces || !spool->gaps ? INCSTACK_ENOMEM : 0;
	if (error == 0) {
		find_traces(spool, found, count);
		compare(spool, found);
		error = found->tree.count == count ? put_batch(spool, found) : INCSTACK_ENOMEM;
	}
	free(found->traces);
	free(spool->gaps);
	return error;
}

/* Returns the log of the record at `at`, or an empty log if the record makes no sense. No two
 * records share events. So a log with which the events of all records exceed the spool makes no
 * sense, either. */
static struct incstack__tracefile_log find_log(struct spool *spool, uint64_t at,
					       const struct incstack__spool_live *live)
{
	struct incstack__tracefile_log log = {.data = spool->data + at + EVENTS_AT,
					      .size = INCSTACK__SPOOL_EVENT_BYTES};
	uint64_t used;

	if (live->events != 0 && live->event_bytes > INCSTACK__SPOOL_EVENT_BYTES_MOST) {
		log.size = 0;
	} else if (live->events != 0) {
		unsigned char *events = at_address(spool, live->events, live->event_bytes,
						   INCSTACK__TRACEFILE_WORD_BYTES);

		log.data = events ? events : log.data;
		log.size = events ? live->event_bytes : 0;
	}
	memcpy(&used, spool->data + at + INCSTACK__SPOOL_USED_OFFSET, sizeof(used));
	if (used <= log.size && used % INCSTACK__TRACEFILE_WORD_BYTES == 0 &&
	    used <= spool->bytes - spool->events)
		log.used = used;
	spool->events += log.used;
	return log;
}

static int recover_record(struct spool *spool, uint64_t at, struct found *found)
{
	int error;

	memcpy(&found->live, spool->data + at + INCSTACK__SPOOL_LIVE_OFFSET, sizeof(found->live));
	if (found->live.magic != INCSTACK__SPOOL_RECORD_MAGIC)
		return 0;
	found->log = find_log(spool, at, &found->live);
	error = recover_events(spool, found);
	return error != 0 ? error : put_tally(spool, found);
}

/* Reads all records. Stops after as many records as the spool has room for, because a damaged list
 * may be a ring. */
static int recover_records(struct spool *spool)
{
	uint64_t at = spool->header.records;

	for (size_t left = spool->bytes / RECORD_BYTES; at != 0 && left > 0; left--) {
		struct found found = {0};
		int error;

		if (at % INCSTACK__SPOOL_RECORD_BYTES != 0 || at > spool->bytes ||
		    spool->bytes - at < RECORD_BYTES)
			return 0;
		error = recover_record(spool, at, &found);
		if (error != 0)
			return error;
		at = found.live.next;
	}
	return 0;
}

int incstack__spool_recover(unsigned char *data, size_t bytes,
			    const struct incstack__tracefile_header *of, unsigned char **blocks,
			    size_t *block_bytes)
{
	struct spool spool = {.data = data, .bytes = bytes};
	const struct incstack__spool_header *header = incstack__spool_header(data, bytes, of);
	int error = INCSTACK_ENOMEM;

	*blocks = NULL;
	*block_bytes = 0;
	if (!header)
		return INCSTACK_EINVAL;
	spool.header = *header;
	if (spool.header.segments > INCSTACK__SPOOL_SEGMENTS)
		spool.header.segments = INCSTACK__SPOOL_SEGMENTS;
	spool.seen = calloc(bytes / OBJECT_BYTES + 1, sizeof(*spool.seen));
	if (spool.seen)
		error = recover_records(&spool);
	free(spool.seen);
	if (error == 0) {
		*blocks = spool.out;
		*block_bytes = spool.out_bytes;
	} else {
		free(spool.out);
	}
	return error;
}
