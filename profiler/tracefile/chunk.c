/* SPDX-License-Identifier: MIT
 *
 * Decodes the payload of one BATCH: frame objects, traces, and the form of every event. Nothing
 * in it is trusted.
 */
#include <stdlib.h>

#include "internal.h"

/* The objects that are left, and the guesses for their pcs. */
struct objects {
	const unsigned char *at;
	const unsigned char *end;
	uint64_t previous; /* selects the guess for the next pc */
	uint64_t guesses[INCSTACK__TRACEFILE_GUESSES];
};

/* Reads a number of `length` bytes. Returns 0 if fewer bytes are left. */
static int get_number(struct objects *objects, size_t length, uint64_t *value)
{
	*value = 0;
	if ((size_t)(objects->end - objects->at) < length)
		return 0;
	memcpy(value, objects->at, length);
	objects->at += length;
	return 1;
}

static int get_pc(struct objects *objects, uint64_t head, uint64_t *pc)
{
	const size_t length = head >> INCSTACK__TRACEFILE_LENGTH_SHIFT;
	uint64_t *guess = &objects->guesses[incstack__tracefile_guess_index(objects->previous)];
	uint64_t difference;

	if (!get_number(objects,
			length == INCSTACK__TRACEFILE_LENGTH_WIDE ? sizeof(difference) : length,
			&difference))
		return 0;
	*pc = *guess ^ difference;
	*guess = *pc;
	objects->previous = *pc;
	return 1;
}

/* Reads where the parent of an object is. `run` is where the current run of neighbouring objects
 * began. A reference back leads to an object before the run, so no chain can be a ring. */
static const char *read_parent(struct incstack__tracefile_chunk *chunk, struct objects *objects,
			       uint32_t index, uint32_t run)
{
	const unsigned where = chunk->flags[index] & INCSTACK__TRACEFILE_PARENT;
	const int is_near = where == INCSTACK__TRACEFILE_PARENT_NEAR;
	uint64_t back;

	chunk->parent[index] = INCSTACK__TRACEFILE_NO_PARENT;
	if (where == INCSTACK__TRACEFILE_PARENT_NEXT) {
		chunk->parent[index] = index + 1;
		return index + 1 < chunk->objects ? NULL : "the last frame object has no parent";
	}
	if (where != INCSTACK__TRACEFILE_PARENT_BACK && !is_near)
		return NULL;
	if (!get_number(objects, is_near ? sizeof(uint16_t) : sizeof(uint32_t), &back) ||
	    back > index || index - back >= run)
		return "the parent of a frame object is malformed";
	chunk->parent[index] = index - (uint32_t)back;
	return NULL;
}

static const char *read_object(struct incstack__tracefile_chunk *chunk, struct objects *objects,
			       uint32_t index, uint32_t run)
{
	uint64_t head;

	if (!get_number(objects, 1, &head) ||
	    (head & INCSTACK__TRACEFILE_PARENT) > INCSTACK__TRACEFILE_PARENT_NEAR)
		return "a frame object is malformed";
	if (!get_pc(objects, head, &chunk->pc[index]))
		return "the address of a frame object is malformed";
	chunk->flags[index] = head & ((1u << INCSTACK__TRACEFILE_LENGTH_SHIFT) - 1);
	return read_parent(chunk, objects, index, run);
}

/* Reads a run, which consists of the objects that one trace added, from its top outwards. Advances
 * *index. */
static const char *read_run(struct incstack__tracefile_chunk *chunk, struct objects *objects,
			    uint32_t *index)
{
	const uint32_t run = *index;
	const char *problem;
	uint32_t at;

	do {
		at = *index;
		if (at == chunk->objects)
			return "there are more frame objects than the batch says";
		problem = read_object(chunk, objects, at, run);
		if (problem)
			return problem;
		*index = at + 1;
	} while (chunk->parent[at] == at + 1);
	objects->previous = ~chunk->pc[run];
	return NULL;
}

/* Whether the next trace equals an earlier trace. */
static bool is_repeated(const struct objects *objects)
{
	return (*objects->at & INCSTACK__TRACEFILE_PARENT) == INCSTACK__TRACEFILE_REPEATED;
}

/* Reads a trace that equals the trace from an earlier object. */
static const char *read_repeated(struct objects *objects, uint32_t index, uint32_t *top)
{
	const size_t length = *objects->at++ >> INCSTACK__TRACEFILE_LENGTH_SHIFT;
	uint64_t back;

	if ((length != sizeof(uint16_t) && length != sizeof(uint32_t)) ||
	    !get_number(objects, length, &back) || back == 0 || back > index)
		return "a repeated trace is malformed";
	*top = index - (uint32_t)back;
	return NULL;
}

/* Reads all traces and their objects. */
static const char *read_objects(struct incstack__tracefile_chunk *chunk, const unsigned char *end)
{
	struct objects objects = {.at = chunk->event_end, .end = end, .previous = ~UINT64_C(0)};
	const char *problem = NULL;
	uint32_t traces = 0;
	uint32_t index = 0;

	for (; objects.at < end && !problem; traces++) {
		if (traces == chunk->traces)
			return "there are more runs of frame objects than traces";
		chunk->top[traces] = index;
		problem = is_repeated(&objects)
				  ? read_repeated(&objects, index, &chunk->top[traces])
				  : read_run(chunk, &objects, &index);
	}
	if (problem)
		return problem;
	if (traces < chunk->traces)
		return "a trace has no frame object";
	return index == chunk->objects ? NULL : "there are fewer frame objects than the batch says";
}

/* Each of the next functions decodes the event that begins with `word`. It returns the size of the
 * event in bytes, or 0 if the event is incomplete. */
static size_t take_wide(const unsigned char *at, size_t left, uint64_t word,
			struct incstack__tracefile_event *event)
{
	uint64_t words[5];

	if (left < sizeof(words))
		return 0;
	memcpy(words, at, sizeof(words));
	event->kind = (uint32_t)(word & UINT32_MAX);
	event->stamp = words[1];
	event->pointer = words[2];
	event->size = words[3];
	event->trace = words[4];
	return sizeof(words);
}

static size_t take_small(const struct incstack__tracefile_place *place, uint64_t word,
			 struct incstack__tracefile_event *event)
{
	event->kind = INCSTACK__TRACEFILE_ALLOC;
	event->stamp = place->stamp + (word >> INCSTACK__TRACEFILE_SMALL_STAMP_SHIFT);
	event->pointer = (word & INCSTACK__TRACEFILE_SMALL_POINTER_MAX) * 16;
	event->size =
		(word >> INCSTACK__TRACEFILE_SMALL_SIZE_SHIFT) & INCSTACK__TRACEFILE_SMALL_SIZE_MAX;
	event->trace = place->trace;
	return INCSTACK__TRACEFILE_WORD_BYTES;
}

static size_t take_pair(const struct incstack__tracefile_place *place, size_t left, uint64_t word,
			struct incstack__tracefile_event *event)
{
	uint64_t second;

	event->kind = (uint32_t)(word >> INCSTACK__TRACEFILE_KIND_SHIFT);
	event->stamp = place->stamp +
		       ((word >> INCSTACK__TRACEFILE_STAMP_SHIFT) & INCSTACK__TRACEFILE_STAMP_MAX);
	event->pointer = word & INCSTACK__TRACEFILE_POINTER_MAX;
	event->size = 0;
	event->trace = INCSTACK__TRACEFILE_NO_TRACE;
	if (event->kind == INCSTACK__TRACEFILE_FREE)
		return INCSTACK__TRACEFILE_WORD_BYTES;
	if (left < INCSTACK__TRACEFILE_ALLOC_BYTES)
		return 0;
	memcpy(&second, place->at + sizeof(word), sizeof(second));
	event->size = second & INCSTACK__TRACEFILE_SIZE_MAX;
	event->trace = second >> INCSTACK__TRACEFILE_INDEX_SHIFT;
	return INCSTACK__TRACEFILE_ALLOC_BYTES;
}

static size_t take_any(const struct incstack__tracefile_place *place, size_t left, uint64_t word,
		       struct incstack__tracefile_event *event)
{
	switch (word >> INCSTACK__TRACEFILE_KIND_SHIFT) {
	case INCSTACK__TRACEFILE_SMALL:
		return take_small(place, word, event);
	case INCSTACK__TRACEFILE_WIDE:
		return take_wide(place->at, left, word, event);
	default:
		return take_pair(place, left, word, event);
	}
}

int incstack__tracefile_event_take(const struct incstack__tracefile_chunk *chunk,
				   struct incstack__tracefile_place *place,
				   struct incstack__tracefile_event *event)
{
	const size_t left = (size_t)(chunk->event_end - place->at);
	uint64_t word;
	size_t bytes;

	if (left < sizeof(word))
		return -1;
	memcpy(&word, place->at, sizeof(word));
	if (word >> INCSTACK__TRACEFILE_TIME_SHIFT == INCSTACK__TRACEFILE_TIME) {
		place->stamp = word & INCSTACK__TRACEFILE_TIME_MAX;
		place->at += sizeof(word);
		return 0;
	}
	bytes = take_any(place, left, word, event);
	if (bytes == 0 ||
	    (event->kind != INCSTACK__TRACEFILE_ALLOC && event->kind != INCSTACK__TRACEFILE_FREE) ||
	    (event->trace != INCSTACK__TRACEFILE_NO_TRACE && event->trace >= chunk->traces))
		return -1;
	place->at += bytes;
	place->stamp = event->stamp;
	if (event->trace != INCSTACK__TRACEFILE_NO_TRACE)
		place->trace = event->trace + 1;
	return 1;
}

static const char *check_events(const struct incstack__tracefile_chunk *chunk)
{
	struct incstack__tracefile_place place = chunk->place;
	struct incstack__tracefile_event event;

	while (place.at < chunk->event_end)
		if (incstack__tracefile_event_take(chunk, &place, &event) < 0)
			return "an event is malformed";
	return NULL;
}

/* Reads the stamp of the first event of a batch that is not decoded yet. Returns 1, or 0 if
 * there is none or the batch makes no sense. */
int incstack__tracefile_chunk_begin(const unsigned char *payload, size_t length, uint64_t *stamp)
{
	struct incstack__tracefile_place place = {.at = payload +
							sizeof(struct incstack__tracefile_batch)};
	struct incstack__tracefile_batch batch;
	struct incstack__tracefile_chunk chunk;
	struct incstack__tracefile_event event;
	int taken = 0;

	if (length < sizeof(batch))
		return 0;
	memcpy(&batch, payload, sizeof(batch));
	if (batch.event_bytes > length - sizeof(batch))
		return 0;
	chunk = (struct incstack__tracefile_chunk){.traces = batch.traces,
						   .event_end = place.at + batch.event_bytes};
	while (taken == 0 && place.at < chunk.event_end)
		taken = incstack__tracefile_event_take(&chunk, &place, &event);
	if (taken > 0)
		*stamp = event.stamp;
	return taken > 0;
}

static int allocate(struct incstack__tracefile_chunk *chunk)
{
	const size_t objects = (size_t)chunk->objects + 1;
	const size_t traces = (size_t)chunk->traces + 1;

	chunk->pc = calloc(objects, sizeof(*chunk->pc));
	chunk->parent = calloc(objects, sizeof(*chunk->parent));
	chunk->flags = calloc(objects, sizeof(*chunk->flags));
	chunk->node = calloc(objects, sizeof(*chunk->node));
	chunk->top = calloc(traces, sizeof(*chunk->top));
	return chunk->pc && chunk->parent && chunk->flags && chunk->node && chunk->top;
}

static const struct incstack__tracefile_epoch *
find_epoch(const struct incstack__tracefile_modules_table *table, uint32_t number)
{
	for (uint32_t i = table->epoch_count; i-- > 0;)
		if (table->epochs[i]->number == number)
			return table->epochs[i];
	return NULL;
}

const char *incstack__tracefile_chunk_read(struct incstack__tracefile_chunk *chunk,
					   const struct incstack__tracefile_modules_table *table,
					   const unsigned char *payload, size_t length)
{
	struct incstack__tracefile_batch batch;
	const char *problem;

	if (length < sizeof(batch))
		return "a batch is too short";
	memcpy(&batch, payload, sizeof(batch));
	payload += sizeof(batch);
	length -= sizeof(batch);
	/* Each object and each trace takes at least one byte. This bounds what is allocated. */
	if ((uint64_t)batch.object_bytes + batch.event_bytes != length ||
	    batch.objects > batch.object_bytes || batch.traces > batch.object_bytes)
		return "the parts of a batch do not add up";
	chunk->objects = batch.objects;
	chunk->traces = batch.traces;
	chunk->epoch = find_epoch(table, batch.epoch);
	if (!allocate(chunk))
		return incstack__tracefile_no_memory;
	chunk->place = (struct incstack__tracefile_place){.at = payload};
	chunk->event_end = payload + batch.event_bytes;
	problem = read_objects(chunk, payload + length);
	return problem ? problem : check_events(chunk);
}

void incstack__tracefile_chunk_free(struct incstack__tracefile_chunk *chunk)
{
	free(chunk->pc);
	free(chunk->parent);
	free(chunk->flags);
	free(chunk->node);
	free(chunk->top);
	memset(chunk, 0, sizeof(*chunk));
}

void incstack__tracefile_chunk_count(const struct incstack__tracefile_chunk *chunk,
				     struct incstack__tracefile_totals *totals)
{
	totals->batches++;
	totals->traces += chunk->traces;
	for (uint32_t i = 0; i < chunk->objects; i++) {
		const uint64_t gap = chunk->pc[i] == INCSTACK__TRACEFILE_GAP_PC;

		totals->gaps += gap;
		totals->truncated += gap || (chunk->flags[i] & INCSTACK__TRACEFILE_PARENT) ==
						    INCSTACK__TRACEFILE_PARENT_TRUNCATED;
	}
}
