/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the reader of the kernel's records, and what is made of them: the walk of a copied stack, the
 * mappings, and allocations. The first two bytes say where in the buffer the records begin and where the
 * reader was; the rest is what the kernel has written.
 */
#include "attach_stand_in.h"

#include "../../src/tool/attach/copy.h"
#include "../../src/tool/attach/events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RING = 8192, PID = 7 };

static struct tool_attach_space *space;
static struct tool_attach_frame frames[TOOL_ATTACH_FRAMES];

int tool_attach_ask_children(void)
{
	return 0;
}

static void walk(const struct tool_attach_sample *sample)
{
	static volatile unsigned sum; /* so that all bytes are read */
	size_t count;

	if (sample->bytes > RING)
		abort();
	for (size_t i = 0; i < sample->bytes; i++)
		sum = sum + sample->copy[i];
	tool_attach_walk(space, sample, frames, &count);
	tool_attach_walk_callers(space, sample, frames, &count);
	if (count > TOOL_ATTACH_FRAMES)
		abort();
}

static void on_sample(void *context, const struct tool_attach_sample *sample)
{
	(void)context;
	walk(sample);
}

static void on_lost(void *context, uint64_t since, uint64_t time, uint64_t count)
{
	(void)context;
	(void)since;
	(void)time;
	(void)count;
}

static void on_switched(void *context, pid_t tid, uint64_t time, int is_on)
{
	(void)context;
	(void)tid;
	(void)time;
	(void)is_on;
}

static void on_hit(void *context, const struct tool_attach_hit *hit)
{
	(void)context;
	if (hit->kind == TOOL_ATTACH_ENTRY)
		walk(&hit->at);
}

static void on_hits_lost(void *context, enum tool_attach_hit_kind kind, uint64_t count)
{
	(void)context;
	(void)count;
	if (kind >= TOOL_ATTACH_HIT_KINDS)
		abort();
}

static void on_mapped(void *context, const struct tool_attach_mapping *mapping)
{
	(void)context;
	tool_attach_space_map(space, mapping);
}

static void on_executed(void *context, uint64_t time)
{
	(void)context;
	(void)time;
	tool_attach_space_clear(space);
}

static void on_ended(void *context, pid_t tid, uint64_t time)
{
	(void)context;
	(void)tid;
	(void)time;
}

static const struct tool_attach_handler handler = {.sample = on_sample,
						   .lost = on_lost,
						   .left = on_sample,
						   .switched = on_switched,
						   .hit = on_hit,
						   .hits_lost = on_hits_lost,
						   .mapped = on_mapped,
						   .executed = on_executed,
						   .ended = on_ended};

/* Writes the records into a buffer, around its end. */
static void fill(struct tool_attach_ring *ring, uint64_t begin, const uint8_t *data, size_t size)
{
	size = size < RING ? size : RING;
	ring->page->data_tail = begin;
	ring->page->data_head = begin + size;
	for (size_t i = 0; i < size; i++)
		ring->data[(begin + i) % RING] = data[i];
}

static struct tool_attach_ring *make_rings(void)
{
	static struct tool_attach_ring rings[1 + TOOL_ATTACH_HIT_KINDS];

	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++) {
		rings[i].page = calloc(1, sizeof(*rings[i].page));
		rings[i].data = malloc(RING);
		rings[i].bytes = RING;
		if (rings[i].page == NULL || rings[i].data == NULL)
			abort();
	}
	return rings;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tool_attach_ring *rings;
	struct tool_attach_events events = {.pid = PID, .ring_count = 1};

	if (size < 2)
		return 0;
	if (rings == NULL) {
		rings = make_rings();
		space = tool_attach_space_new();
	}
	if (space == NULL)
		abort();
	set_input(data, size);
	events.rings = &rings[0];
	events.hits.rings = &rings[1];
	events.hits.ring_count = TOOL_ATTACH_HIT_KINDS;
	events.hits.processors = 1;
	for (unsigned i = 0; i <= TOOL_ATTACH_HIT_KINDS; i++)
		fill(&rings[i], (uint64_t)data[0] * 8 * 64, data + 2,
		     i == data[1] % 4 ? size - 2 : 0);
	tool_attach_events_read(&events, &handler);
	free(events.found);
	tool_attach_space_clear(space);
	return 0;
}
