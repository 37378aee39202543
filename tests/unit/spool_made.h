/* SPDX-License-Identifier: MIT
 *
 * A spool as a process might have left it, for the tests of its reader. It has two records with
 * three traces each. The first trace contains a gap; the second shares the callers of the third.
 * Each has a walk, as under --crosscheck.
 */
#ifndef INCSTACK_SPOOL_MADE_H
#define INCSTACK_SPOOL_MADE_H

#include <string.h>

#include "tracefile/spool_format.h"
#include "tracefile/write.h"

enum {
	MADE_RECORD_BYTES = INCSTACK__SPOOL_RECORD_BYTES + INCSTACK__SPOOL_EVENT_BYTES,
	MADE_RECORDS = 2,
	MADE_TRACES = 3,
	MADE_CHUNK_BYTES = 4096,
	MADE_CHUNKS_AT = INCSTACK__SPOOL_HEADER_BYTES + MADE_RECORDS * MADE_RECORD_BYTES,
	MADE_BYTES = MADE_CHUNKS_AT + MADE_RECORDS * MADE_CHUNK_BYTES,
	MADE_TREE_AT = 64,
	MADE_OBJECTS_AT = 128,
	MADE_TRACES_AT = 2048,
	MADE_WALKS_AT = 3072,
};
#define MADE_ADDRESS UINT64_C(0x7f1234560000)

static inline void *made_pointer(uint64_t offset)
{
	return (void *)(uintptr_t)(MADE_ADDRESS + offset);
}

/* Objects 0..2 are a chain with a gap behind 0, 3 is the top of the second trace, whose
 * caller is 2, and 4 that of the third, whose caller is 2, too. */
static inline void make_chunk(unsigned char *spool, uint64_t at)
{
	static const struct {
		int parent; /* negative: none */
		uint32_t flags;
	} kinds[] = {{1, INCSTACK_OBJECT_GAP},
		     {2, INCSTACK_OBJECT_FILLED},
		     {-1, INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_BASE},
		     {2, INCSTACK_OBJECT_FILLED},
		     {2, INCSTACK_OBJECT_FILLED}};
	static const uint64_t tops[MADE_TRACES] = {0, 3, 4};
	const struct incstack_tree tree = {.traces = made_pointer(at + MADE_TRACES_AT)};

	memcpy(spool + at + MADE_TREE_AT, &tree, sizeof(tree));
	for (uint64_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct incstack_frame_object object = {
			.parent = kinds[i].parent < 0 ? NULL
						      : made_pointer(at + MADE_OBJECTS_AT +
								     (uint64_t)kinds[i].parent *
									     sizeof(object)),
			.function = 0x1000 + 16 * i,
			.address = 0x7000 + 64 * i,
			.position = -1,
			.flags = kinds[i].flags,
		};

		memcpy(spool + at + MADE_OBJECTS_AT + i * sizeof(object), &object, sizeof(object));
	}
	for (uint64_t i = 0; i < MADE_TRACES; i++) {
		const struct incstack_trace trace = {
			.next = i + 1 < MADE_TRACES ? made_pointer(at + MADE_TRACES_AT +
								   (i + 1) * sizeof(trace))
						    : NULL,
			.id = i,
			.top = made_pointer(at + MADE_OBJECTS_AT +
					    tops[i] * sizeof(struct incstack_frame_object)),
		};

		memcpy(spool + at + MADE_TRACES_AT + i * sizeof(trace), &trace, sizeof(trace));
	}
}

/* As each trace, but the first walk has a frame where the trace has a gap. */
static inline uint64_t *made_walk(uint64_t *at, const int *objects, uint64_t count)
{
	*at++ = count + 1;
	for (uint64_t i = 0; i < count; i++) {
		*at++ = objects[i] < 0 ? 0x9999 : 0x1000 + 16 * (uint64_t)objects[i];
		*at++ = objects[i] < 0 ? 0x7020 : 0x7000 + 64 * (uint64_t)objects[i];
	}
	return at;
}

static inline void make_walks(unsigned char *spool, uint64_t at)
{
	static const int first[] = {0, -1, 1, 2};
	static const int second[] = {3, 2};
	static const int third[] = {4, 2};
	uint64_t words[32];
	uint64_t *end = made_walk(words, first, 4);

	end = made_walk(end, second, 2);
	end = made_walk(end, third, 2);
	memcpy(spool + at, words, (size_t)(end - words) * sizeof(*words));
}

static inline void make_record(unsigned char *spool, uint32_t number, uint64_t at, uint64_t next)
{
	const uint64_t chunk = MADE_CHUNKS_AT + number * MADE_CHUNK_BYTES;
	const struct incstack__spool_live live = {.magic = INCSTACK__SPOOL_RECORD_MAGIC,
						  .next = next,
						  .tree = MADE_ADDRESS + chunk + MADE_TREE_AT,
						  .thread = number,
						  .epoch = 2,
						  .serial = 4,
						  .walks = MADE_ADDRESS + chunk + MADE_WALKS_AT,
						  .walk_bytes = MADE_CHUNK_BYTES - MADE_WALKS_AT,
						  .walk_count = MADE_TRACES};
	struct incstack__tracefile_log log;
	uint64_t used;

	incstack__tracefile_log_init(&log, spool + at + INCSTACK__SPOOL_RECORD_BYTES,
				     INCSTACK__SPOOL_EVENT_BYTES);
	for (uint64_t i = 0; i < MADE_TRACES; i++)
		incstack__tracefile_put_alloc(&log, 100 * i + number,
					      0x5000 + 4096 * number + 32 * i, 10, i);
	used = log.used;
	memcpy(spool + at + INCSTACK__SPOOL_USED_OFFSET, &used, sizeof(used));
	memcpy(spool + at + INCSTACK__SPOOL_LIVE_OFFSET, &live, sizeof(live));
	make_chunk(spool, chunk);
	make_walks(spool, chunk + MADE_WALKS_AT);
}

/* spool has MADE_BYTES, all zero. */
static inline void make_spool(unsigned char *spool, const struct incstack__tracefile_header *of)
{
	struct incstack__spool_header header = {.magic = INCSTACK__SPOOL_MAGIC,
						.version = INCSTACK__SPOOL_VERSION,
						.segments = 1,
						.pid = of->pid,
						.start_ns = of->start_ns};
	uint64_t next = 0;

	header.segment[0] = (struct incstack__spool_segment){MADE_ADDRESS, MADE_BYTES, 0};
	for (uint32_t i = 0; i < MADE_RECORDS; i++) {
		const uint64_t at = INCSTACK__SPOOL_HEADER_BYTES + i * MADE_RECORD_BYTES;

		make_record(spool, i, at, next);
		next = at;
	}
	header.records = next;
	memcpy(spool, &header, sizeof(header));
}

#endif
