/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the reader of the kernel's records, and what is made of them: the walk of a copied stack, the
 * mappings, and allocations. The first two bytes say where in the buffer the records begin and where the
 * reader was; the rest is what the kernel has written.
 */
#include "attach_stand_in.h"

#include "tool/attach/kernel/read.h"
#include "tool/attach/kernel/rings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RING = 8192, PID = 7 };

static struct tool_attach_space *space;
static struct tool_attach_frame frames[TOOL_ATTACH_FRAMES];

bool tool_attach_ask_children(void)
{
	return false;
}

static void walk(const struct tool_attach_stack *stack)
{
	static volatile unsigned sum; /* so that all bytes are read */
	size_t count;

	if (stack->bytes > RING)
		abort();
	for (size_t i = 0; i < stack->bytes; i++)
		sum = sum + stack->copy[i];
	tool_attach_walk(space, stack, frames, &count);
	tool_attach_walk_callers(space, stack, frames, &count);
	if (count > TOOL_ATTACH_FRAMES)
		abort();
}

static void on_report(void *context, const struct tool_attach_report *report)
{
	(void)context;
	switch (report->kind) {
	case TOOL_ATTACH_TICK:
	case TOOL_ATTACH_LEFT:
		walk(&report->stack);
		break;
	case TOOL_ATTACH_HIT:
		if (report->hit.kind == TOOL_ATTACH_ENTRY)
			walk(&report->hit.stack);
		break;
	case TOOL_ATTACH_HITS_LOST:
		if (report->hits_lost.kind >= TOOL_ATTACH_HIT_KINDS)
			abort();
		break;
	case TOOL_ATTACH_MAPPED:
		tool_attach_space_map(space, &report->mapping);
		break;
	case TOOL_ATTACH_EXECUTED:
		tool_attach_space_clear(space);
		break;
	default:
		break;
	}
}

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
	tool_attach_events_read(&events, on_report, NULL);
	free(events.found);
	tool_attach_space_clear(space);
	return 0;
}
