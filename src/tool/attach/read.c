/* SPDX-License-Identifier: MIT
 *
 * Reads the kernel's reports on a sampled process: from the buffer of each processor, in the order
 * of time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* reallocarray */
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "events.h"

/* Returns the record at that position, or a copy if it wraps around the end of the buffer. */
static const struct perf_event_header *record_at(const struct tool_attach_ring *ring, uint64_t at)
{
	static _Alignas(8) unsigned char whole[TOOL_ATTACH_RECORD_MOST];
	const size_t from = at & (ring->bytes - 1);
	const struct perf_event_header *head =
		(const struct perf_event_header *)(const void *)(ring->data + from);
	const size_t first = ring->bytes - from;

	if (head->size <= first)
		return head;
	memcpy(whole, ring->data + from, first);
	memcpy(whole + first, ring->data, head->size - first);
	return (const struct perf_event_header *)(const void *)whole;
}

/* Each record is a number of words. */
static const uint64_t *words_of(const struct perf_event_header *head)
{
	return (const uint64_t *)(const void *)(head + 1);
}

/* The time is the second word of a sample, and the last but one of every other record. */
static uint64_t time_of(const struct perf_event_header *head)
{
	if (head->type == PERF_RECORD_SAMPLE)
		return words_of(head)[1];
	return words_of(head)[(head->size - sizeof(*head)) / sizeof(uint64_t) - 2];
}

static struct tool_attach_found *add_found(struct tool_attach_events *events, size_t count)
{
	const size_t room = events->found_room ? 2 * events->found_room : 256;
	struct tool_attach_found *more;

	if (count < events->found_room)
		return &events->found[count];
	more = reallocarray(events->found, room, sizeof(*more));
	if (more == NULL)
		return NULL;
	events->found = more;
	events->found_room = room;
	return &more[count];
}

/* Adds the records of a buffer that are older than `until`. Returns how many there are now. */
static size_t find_records(struct tool_attach_events *events, struct tool_attach_ring *ring,
			   uint64_t until, size_t count)
{
	const uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = ring->page->data_tail;

	while (at < head) {
		const struct perf_event_header *record = record_at(ring, at);
		struct tool_attach_found found = {time_of(record), ring, at};
		struct tool_attach_found *place =
			found.time <= until ? add_found(events, count) : NULL;

		if (place == NULL)
			break;
		*place = found;
		count++;
		at += record->size;
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
static int is_inherited(const struct tool_attach_events *events, pid_t tid, uint64_t id)
{
	int has_own = 0;

	for (size_t i = events->early; i < events->count; i++) {
		if (events->events[i].tid != tid)
			continue;
		if (events->events[i].id == id)
			return 0;
		has_own = 1;
	}
	return has_own;
}

/* The words of a sample: pid and tid, time, id, period, kind of registers, the registers, the size of
 * the copy, the copy, how much of it was read. */
static void pass_sample(const struct tool_attach_events *events, const uint64_t *words,
			const struct tool_attach_handler *handler)
{
	struct tool_attach_sample sample = {.tid = (pid_t)(words[0] >> 32), .time = words[1]};

	if ((pid_t)words[0] != events->pid || is_inherited(events, sample.tid, words[2]))
		return;
	sample.is_native = words[4] == PERF_SAMPLE_REGS_ABI_64;
	if (sample.is_native) {
		const uint64_t size = words[8];

		sample.fp = words[5];
		sample.sp = words[6];
		sample.pc = words[7];
		sample.copy = (const unsigned char *)(words + 9);
		sample.bytes = size != 0 ? words[9 + size / sizeof(uint64_t)] : 0;
	}
	if (words[3] == TOOL_ATTACH_SWITCH_PERIOD)
		handler->left(handler->context, &sample);
	else
		handler->sample(handler->context, &sample);
}

/* The words of a switch: pid and tid, time, id. */
static void pass_switch(const struct tool_attach_events *events,
			const struct perf_event_header *head,
			const struct tool_attach_handler *handler)
{
	const uint64_t *words = words_of(head);
	const pid_t tid = (pid_t)(words[0] >> 32);

	if ((pid_t)words[0] == events->pid && !is_inherited(events, tid, words[2]))
		handler->switched(handler->context, tid, words[1],
				  (head->misc & PERF_RECORD_MISC_SWITCH_OUT) == 0);
}

/* The words of a mapping: pid and tid, address, length, offset, device, inode, generation of the inode,
 * protection and flags, path. */
static void pass_mapping(const uint64_t *words, const struct tool_attach_handler *handler)
{
	const struct tool_attach_mapping mapping = {
		.low = words[1],
		.high = words[1] + words[2],
		.offset = words[3],
		.device = makedev((unsigned)words[4], (unsigned)(words[4] >> 32)),
		.inode = words[5],
		.is_code = 1,
		.path = (const char *)(words + 8),
	};

	handler->mapped(handler->context, &mapping);
}

/* The words of a hit: pid and tid, time, id, the size and the first half of what the program wrote (the
 * number of the probe), the other half (a value), kind of registers, the registers; of an entry, the
 * size of the copy, the copy, how much of it was read. */
static void pass_hit(const struct tool_attach_events *events, const uint64_t *words,
		     enum tool_attach_hit_kind kind, const struct tool_attach_handler *handler)
{
	struct tool_attach_hit hit = {
		.at = {.tid = (pid_t)(words[0] >> 32), .time = words[1]},
		.kind = kind,
		.probe = (uint32_t)(words[3] >> 32),
		.value = words[4],
	};

	if ((pid_t)words[0] != events->pid || words[5] != PERF_SAMPLE_REGS_ABI_64)
		return;
	hit.at.is_native = 1;
	hit.result = words[6];
	hit.arguments[2] = words[7];
	hit.arguments[1] = words[8];
	hit.arguments[0] = words[9];
	hit.at.fp = words[10];
	hit.at.sp = words[11];
	hit.at.pc = words[12];
	if (kind == TOOL_ATTACH_ENTRY) {
		hit.at.copy = (const unsigned char *)(words + 14);
		hit.at.bytes = words[13] != 0 ? words[14 + words[13] / sizeof(uint64_t)] : 0;
	}
	handler->hit(handler->context, &hit);
}

/* Passes on a record of a buffer of hits. Returns non-zero if it is none. */
static int pass_hits(struct tool_attach_events *events, const struct tool_attach_found *found,
		     const struct perf_event_header *head,
		     const struct tool_attach_handler *handler)
{
	struct tool_attach_hits *hits = &events->hits;
	enum tool_attach_hit_kind kind;

	if (found->ring < hits->rings || found->ring >= hits->rings + hits->ring_count)
		return -1;
	kind = (enum tool_attach_hit_kind)((size_t)(found->ring - hits->rings) / hits->processors);
	if (head->type == PERF_RECORD_SAMPLE) {
		pass_hit(events, words_of(head), kind, handler);
	} else if (head->type == PERF_RECORD_LOST) { /* id, number */
		hits->lost[kind] += words_of(head)[1];
		handler->hits_lost(handler->context, kind, words_of(head)[1]);
	}
	return 0;
}

static void pass_on(struct tool_attach_events *events, const struct tool_attach_found *found,
		    const struct tool_attach_handler *handler)
{
	const struct perf_event_header *head = record_at(found->ring, found->at);
	const uint64_t *words = words_of(head);
	const uint64_t before = found->ring->passed;

	found->ring->passed = found->time;
	if (pass_hits(events, found, head, handler) == 0)
		return;
	switch (head->type) {
	case PERF_RECORD_SAMPLE:
		pass_sample(events, words, handler);
		break;
	case PERF_RECORD_SWITCH:
		pass_switch(events, head, handler);
		break;
	case PERF_RECORD_FORK: /* as EXIT */
		if ((pid_t)words[0] != events->pid)
			events->hits.children.has_new = 1;
		break;
	case PERF_RECORD_LOST: /* id, number */
		events->lost += words[1];
		events->hits.children.has_new = 1; /* perhaps */
		handler->lost(handler->context, before, found->time, words[1]);
		break;
	case PERF_RECORD_MMAP2:
		if ((pid_t)words[0] == events->pid)
			pass_mapping(words, handler);
		break;
	case PERF_RECORD_EXIT: /* pid and that of the parent, tid and that of the parent */
		if ((pid_t)words[0] == events->pid)
			handler->ended(handler->context, (pid_t)words[1], found->time);
		break;
	case PERF_RECORD_COMM:
		if ((pid_t)words[0] == events->pid && head->misc & PERF_RECORD_MISC_COMM_EXEC)
			handler->executed(handler->context, found->time);
		break;
	default:
		break;
	}
}

/* Returns the space of the records that were found to the kernel. */
static void give_back(struct tool_attach_ring *rings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rings[i].page != NULL)
			__atomic_store_n(&rings[i].page->data_tail, rings[i].tail,
					 __ATOMIC_RELEASE);
}

static size_t find_all(struct tool_attach_events *events, struct tool_attach_ring *rings,
		       size_t ring_count, uint64_t until, size_t count)
{
	for (size_t i = 0; i < ring_count; i++)
		if (rings[i].page != NULL)
			count = find_records(events, &rings[i], until, count);
	return count;
}

/* Records that come during this pass wait for the next one, because an older record may still come
 * in a buffer that was read before. */
void tool_attach_events_read(struct tool_attach_events *events,
			     const struct tool_attach_handler *handler)
{
	struct tool_attach_hits *hits = &events->hits;
	const uint64_t until = tool_record_now(CLOCK_MONOTONIC);
	size_t count = find_all(events, events->rings, events->ring_count, until, 0);

	count = find_all(events, hits->rings, hits->ring_count, until, count);
	if (count > 1)
		qsort(events->found, count, sizeof(*events->found), by_time);
	for (size_t i = 0; i < count; i++)
		pass_on(events, &events->found[i], handler);
	give_back(events->rings, events->ring_count);
	give_back(hits->rings, hits->ring_count);
	if (hits->is_linked)
		tool_attach_children_free(&hits->children);
}
