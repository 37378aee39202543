/* SPDX-License-Identifier: MIT
 *
 * Reads the kernel's reports on a sampled process: from the buffer of each processor, in the order
 * of time.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "read.h"
#include "rings.h"
#include "tool/attach/process/ask.h"
#include "tool/record/record.h"

/* A record: its head, and the words behind that. */
struct record {
	const struct perf_event_header *head;
	const uint64_t *words;
	size_t count;
};

/* Returns the record at that position, or a copy if it wraps around the end of the buffer. There are
 * `left` bytes up to the end of what the kernel has written. Returns non-zero if no record can be
 * there. */
static int record_at(const struct tool_attach_ring *ring, uint64_t at, uint64_t left,
		     struct record *record)
{
	static _Alignas(8) unsigned char whole[TOOL_ATTACH_RECORD_MOST];
	const size_t from = at & (ring->bytes - 1);
	const size_t first = ring->bytes - from;
	const unsigned char *start = ring->data + from;
	struct perf_event_header head;

	if (from % sizeof(uint64_t) != 0 || left < sizeof(head))
		return -1;
	memcpy(&head, start, sizeof(head)); /* a head is a word, so it does not wrap around */
	if (head.size < sizeof(head) || head.size % sizeof(uint64_t) != 0 || head.size > left ||
	    head.size > ring->bytes)
		return -1;
	if (head.size > first) {
		memcpy(whole, start, first);
		memcpy(whole + first, ring->data, head.size - first);
		start = whole;
	}
	record->head = (const struct perf_event_header *)(const void *)start;
	record->words = (const uint64_t *)(const void *)(start + sizeof(head));
	record->count = (head.size - sizeof(head)) / sizeof(uint64_t);
	return 0;
}

/* Who gets the reports. */
struct handler {
	tool_attach_handle *handle;
	void *context;
};

/* How many words records have: the id of the thread and the time, at least; and those that are read. */
enum { WORDS_LEAST = 2, SAMPLE_WORDS = 5, SWITCH_WORDS = 3, MAPPING_WORDS = 8, HIT_WORDS = 13 };

/* The time is the second word of a sample, and the last but one of every other record. Returns
 * non-zero if the record has no room for it. */
static int time_of(const struct record *record, uint64_t *time)
{
	if (record->count < WORDS_LEAST)
		return -1;
	*time = record->words[record->head->type == PERF_RECORD_SAMPLE ? 1 : record->count - 2];
	return 0;
}

/* Sets the copy of a stack, which is at a word of a record: its size, the bytes, and how many of them
 * are those of the stack. */
static void take_stack(const struct record *record, size_t at, struct tool_attach_stack *stack)
{
	const size_t left = record->count > at ? record->count - at - 1 : 0;
	const uint64_t words = left > 0 ? record->words[at] / sizeof(uint64_t) : 0;

	stack->copy = (const unsigned char *)(record->words + at + 1);
	stack->bytes = 0;
	if (words > 0 && words < left)
		stack->bytes = record->words[at + 1 + words];
	if (stack->bytes > words * sizeof(uint64_t))
		stack->bytes = 0;
}

static struct tool_attach_found *add_found(struct tool_attach_events *events, size_t count)
{
	const size_t room = events->found_room ? 2 * events->found_room : 256;
	struct tool_attach_found *more;

	if (count < events->found_room)
		return &events->found[count];
	more = reallocarray(events->found, room, sizeof(*more));
	if (!more)
		return NULL;
	events->found = more;
	events->found_room = room;
	return &more[count];
}

/* The kernel's header does not say that a position is atomic. */
static _Atomic(__u64) *shared(__u64 *position)
{
	return (_Atomic(__u64) *)position;
}

/* Adds the records of a buffer that are older than `until`. Returns how many there are now. What can be
 * no record ends the buffer: it is passed over. */
static size_t find_records(struct tool_attach_events *events, struct tool_attach_ring *ring,
			   uint64_t until, size_t count)
{
	const uint64_t head =
		atomic_load_explicit(shared(&ring->page->data_head), memory_order_acquire);
	uint64_t at = ring->page->data_tail;

	while (at < head) {
		struct tool_attach_found found = {0, ring, at};
		struct tool_attach_found *place;
		struct record record;

		if (record_at(ring, at, head - at, &record) != 0 ||
		    time_of(&record, &found.time) != 0) {
			at = head;
			break;
		}
		place = found.time <= until ? add_found(events, count) : NULL;
		if (!place)
			break;
		*place = found;
		count++;
		at += record.head->size;
	}
	ring->tail = at;
	return count;
}

static int by_time(const void *left, const void *right)
{
	const struct tool_attach_found *a = left;
	const struct tool_attach_found *b = right;

	return a->time != b->time ? (a->time > b->time) - (a->time < b->time)
				  : (a->at > b->at) - (a->at < b->at);
}

/* Whether the thread has events of its own and the sample is one of an event that it has inherited as
 * well; see add_all_threads(). */
static bool is_inherited(const struct tool_attach_events *events, pid_t tid, uint64_t id)
{
	bool has_own = false;

	for (size_t i = events->early; i < events->count; i++) {
		if (events->events[i].tid != tid)
			continue;
		if (events->events[i].id == id)
			return false;
		has_own = true;
	}
	return has_own;
}

/* Sets the addresses that the kernel has found by frame pointers: their number is at a word of a record. A word
 * before them says that they are of the process, not of the kernel. Returns where they end; 0: nowhere. */
static size_t take_chain(const struct record *record, size_t at, struct tool_attach_stack *stack)
{
	const uint64_t *chain = record->words + at + 1;
	uint64_t count = record->words[at];

	if (count >= record->count - at)
		return 0;
	stack->chain = chain;
	stack->chain_count = count;
	if (count > 0 && chain[0] == (uint64_t)PERF_CONTEXT_USER) {
		stack->chain++;
		stack->chain_count--;
	}
	return at + 1 + count;
}

/* The words of a sample: pid and tid, time, id, period, the number of addresses, these, kind of registers, the
 * registers, the size of the copy, the copy, how much of it was read. */
static void pass_sample(const struct tool_attach_events *events, const struct record *record,
			const struct handler *handler)
{
	enum { CHAIN = 4, STACK = 4 };
	const uint64_t *words = record->words;
	struct tool_attach_report report = {.tid = (pid_t)(words[0] >> 32), .time = words[1]};
	struct tool_attach_stack *stack = &report.stack;
	size_t at;

	if (record->count < SAMPLE_WORDS || (pid_t)words[0] != events->pid ||
	    is_inherited(events, report.tid, words[2]))
		return;
	at = take_chain(record, CHAIN, stack);
	stack->is_native =
		at != 0 && record->count > at + STACK && words[at] == PERF_SAMPLE_REGS_ABI_64;
	if (stack->is_native) {
		stack->fp = words[at + 1];
		stack->sp = words[at + 2];
		stack->pc = words[at + 3];
		take_stack(record, at + STACK, stack);
	}
	report.kind = words[3] == TOOL_ATTACH_SWITCH_PERIOD ? TOOL_ATTACH_LEFT : TOOL_ATTACH_TICK;
	handler->handle(handler->context, &report);
}

/* The words of a switch: pid and tid, time, id. */
static void pass_switch(const struct tool_attach_events *events, const struct record *record,
			const struct handler *handler)
{
	const uint64_t *words = record->words;
	const bool is_off = (record->head->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
	const struct tool_attach_report report = {
		.kind = is_off ? TOOL_ATTACH_OFF : TOOL_ATTACH_ON,
		.tid = (pid_t)(words[0] >> 32),
		.time = words[1],
		.is_preempted = (record->head->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0,
	};

	if (record->count >= SWITCH_WORDS && (pid_t)words[0] == events->pid &&
	    !is_inherited(events, report.tid, words[2]))
		handler->handle(handler->context, &report);
}

/* The words of a mapping: pid and tid, address, length, offset, device, inode, generation of the inode,
 * protection and flags, path. */
static void pass_mapping(const struct record *record, uint64_t time, const struct handler *handler)
{
	const uint64_t *words = record->words;
	struct tool_attach_report report = {
		.kind = TOOL_ATTACH_MAPPED, .tid = (pid_t)(words[0] >> 32), .time = time};

	if (record->count <= MAPPING_WORDS ||
	    !memchr(words + MAPPING_WORDS, '\0', (record->count - MAPPING_WORDS) * sizeof(*words)))
		return;
	report.mapping = (struct tool_attach_mapping){
		.low = words[1],
		.high = words[1] + words[2],
		.offset = words[3],
		.device = makedev((unsigned)words[4], (unsigned)(words[4] >> 32)),
		.inode = words[5],
		.is_code = true,
		.path = (const char *)(words + MAPPING_WORDS),
	};
	handler->handle(handler->context, &report);
}

/* The words of a hit: pid and tid, time, id, the size and the first half of what the program wrote (the
 * number of the probe), the other half (a value), kind of registers, the registers; of an entry, the
 * size of the copy, the copy, how much of it was read. */
static void pass_hit(const struct tool_attach_events *events, const struct record *record,
		     enum tool_attach_hit_kind kind, const struct handler *handler)
{
	const uint64_t *words = record->words;
	struct tool_attach_report report = {
		.kind = TOOL_ATTACH_HIT, .tid = (pid_t)(words[0] >> 32), .time = words[1]};

	if (record->count < HIT_WORDS || (pid_t)words[0] != events->pid ||
	    words[5] != PERF_SAMPLE_REGS_ABI_64)
		return;
	report.hit = (struct tool_attach_hit){
		.kind = kind,
		.probe = (uint32_t)(words[3] >> 32),
		.value = words[4],
		.result = words[6],
		.arguments = {words[9], words[8], words[7]},
		.stack = {.is_native = true, .fp = words[10], .sp = words[11], .pc = words[12]},
	};
	if (kind == TOOL_ATTACH_ENTRY)
		take_stack(record, HIT_WORDS, &report.hit.stack);
	handler->handle(handler->context, &report);
}

/* The words of a loss: id, number. */
static void pass_lost_hits(struct tool_attach_hits *hits, const struct record *record,
			   uint64_t time, enum tool_attach_hit_kind kind,
			   const struct handler *handler)
{
	const struct tool_attach_report report = {
		.kind = TOOL_ATTACH_HITS_LOST, .time = time, .hits_lost = {record->words[1], kind}};

	hits->lost[kind] += record->words[1];
	handler->handle(handler->context, &report);
}

/* Passes on a record of a buffer of hits. Returns false if it is in another buffer. */
static bool pass_hits(struct tool_attach_events *events, const struct tool_attach_found *found,
		      const struct record *record, const struct handler *handler)
{
	struct tool_attach_hits *hits = &events->hits;
	enum tool_attach_hit_kind kind;

	if (found->ring < hits->rings || found->ring >= hits->rings + hits->ring_count)
		return false;
	kind = (enum tool_attach_hit_kind)((size_t)(found->ring - hits->rings) / hits->processors);
	if (record->head->type == PERF_RECORD_SAMPLE)
		pass_hit(events, record, kind, handler);
	else if (record->head->type == PERF_RECORD_LOST)
		pass_lost_hits(hits, record, found->time, kind, handler);
	return true;
}

/* The words of a loss: id, number. */
static void pass_lost(struct tool_attach_events *events, const struct record *record,
		      uint64_t since, uint64_t time, const struct handler *handler)
{
	const struct tool_attach_report report = {
		.kind = TOOL_ATTACH_LOST, .time = time, .lost = {record->words[1], since}};

	events->lost += record->words[1];
	events->hits.has_new = true; /* perhaps */
	handler->handle(handler->context, &report);
}

/* Passes on a record about the process that has WORDS_LEAST words. */
static void pass_record_of_process(const struct record *record, uint64_t time,
				   const struct handler *handler)
{
	struct tool_attach_report report = {.time = time};

	switch (record->head->type) {
	case PERF_RECORD_MMAP2:
		pass_mapping(record, time, handler);
		break;
	case PERF_RECORD_EXIT: /* pid and that of the parent, tid and that of the parent */
		report.kind = TOOL_ATTACH_ENDED;
		report.tid = (pid_t)record->words[1];
		handler->handle(handler->context, &report);
		break;
	case PERF_RECORD_COMM: /* pid and tid, the name */
		report.kind = TOOL_ATTACH_EXECUTED;
		report.tid = (pid_t)(record->words[0] >> 32);
		if ((record->head->misc & PERF_RECORD_MISC_COMM_EXEC) != 0)
			handler->handle(handler->context, &report);
		break;
	default:
		break;
	}
}

/* Passes on a record that has WORDS_LEAST words. */
static void pass_record(struct tool_attach_events *events, const struct tool_attach_found *found,
			const struct record *record, const struct handler *handler)
{
	const bool is_of_process = (pid_t)record->words[0] == events->pid;
	const uint64_t before = found->ring->passed;

	found->ring->passed = found->time;
	if (pass_hits(events, found, record, handler))
		return;
	switch (record->head->type) {
	case PERF_RECORD_SAMPLE:
		pass_sample(events, record, handler);
		break;
	case PERF_RECORD_SWITCH:
		pass_switch(events, record, handler);
		break;
	case PERF_RECORD_FORK: /* as EXIT */
		events->hits.has_new |= !is_of_process;
		break;
	case PERF_RECORD_LOST:
		pass_lost(events, record, before, found->time, handler);
		break;
	default:
		if (is_of_process)
			pass_record_of_process(record, found->time, handler);
		break;
	}
}

static void pass_on(struct tool_attach_events *events, const struct tool_attach_found *found,
		    const struct handler *handler)
{
	struct record record;

	if (record_at(found->ring, found->at, found->ring->tail - found->at, &record) == 0)
		pass_record(events, found, &record, handler);
}

/* Returns the space of the records that were found to the kernel. */
static void give_back(struct tool_attach_ring *rings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rings[i].page)
			atomic_store_explicit(shared(&rings[i].page->data_tail), rings[i].tail,
					      memory_order_release);
}

static size_t find_all(struct tool_attach_events *events, struct tool_attach_ring *rings,
		       size_t ring_count, uint64_t until, size_t count)
{
	for (size_t i = 0; i < ring_count; i++)
		if (rings[i].page)
			count = find_records(events, &rings[i], until, count);
	return count;
}

/* Records that come during this pass wait for the next one, because an older record may still come
 * in a buffer that was read before. */
void tool_attach_events_read(struct tool_attach_events *events, tool_attach_handle *handle,
			     void *context)
{
	const struct handler handler = {handle, context};
	struct tool_attach_hits *hits = &events->hits;
	const uint64_t until = tool_record_now(CLOCK_MONOTONIC);
	size_t count = find_all(events, events->rings, events->ring_count, until, 0);

	count = find_all(events, hits->rings, hits->ring_count, until, count);
	if (count > 1)
		qsort(events->found, count, sizeof(*events->found), by_time);
	for (size_t i = 0; i < count; i++)
		pass_on(events, &events->found[i], &handler);
	give_back(events->rings, events->ring_count);
	give_back(hits->rings, hits->ring_count);
	if (hits->is_open && hits->has_new)
		hits->has_new = tool_attach_ask_children();
}
