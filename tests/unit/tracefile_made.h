/* SPDX-License-Identifier: MIT
 *
 * A trace file in memory: modules, two batches with random trees, and tallies.
 */
#ifndef TRACEFILE_MADE_H
#define TRACEFILE_MADE_H

#include <check.h>
#include <string.h>

#include "tracefile/read.h"
#include "tracefile_batch.h"

#define OBJECTS 64
#define TRACES 48

static _Alignas(8) unsigned char file[1 << 20];
static size_t file_bytes;

struct made {
	struct incstack_frame_object objects[OBJECTS];
	struct incstack_trace traces[TRACES];
	struct incstack_tree tree;
	uint64_t pcs[TRACES][OBJECTS]; /* what each trace must read back as */
	uint32_t depth[TRACES];
};

/* A random forest in which the parent of an object may lie anywhere, before or
 * behind it in memory. */
static inline void make_tree(struct made *made, uint64_t seed)
{
	memset(made, 0, sizeof(*made));
	for (uint32_t i = 0; i < OBJECTS; i++) {
		const uint32_t at = (i * 37) % OBJECTS;
		const uint64_t parent = random_next(&seed) % (i + 1);
		struct incstack_frame_object *object = &made->objects[at];

		object->function = 0x400000 + random_next(&seed) % 0x300000;
		if (i % 4 == 0) /* of any size */
			object->function = random_next(&seed) << 33 >> random_next(&seed) % 64;
		object->position = -1;
		object->flags = INCSTACK_OBJECT_FILLED;
		if (parent == i)
			object->flags |= INCSTACK_OBJECT_BASE;
		else
			object->parent = &made->objects[(parent * 37) % OBJECTS];
	}
	for (uint32_t i = 0; i < TRACES; i++) {
		const struct incstack_frame_object *top;

		top = &made->objects[random_next(&seed) % OBJECTS];
		made->traces[i].top = top;
		made->traces[i].id = i;
		made->traces[i].next = i + 1 < TRACES ? &made->traces[i + 1] : NULL;
		for (; top != NULL; top = top->parent)
			made->pcs[i][made->depth[i]++] = top->function;
	}
	made->tree = (struct incstack_tree){made->traces, TRACES, OBJECTS, 0};
}

static inline void start_file(void)
{
	struct incstack__tracefile_header header;
	struct incstack__tracefile_slot slot = {.samples_started = 2 * TRACES};

	memset(file, 0, sizeof(file));
	ck_assert_int_eq(incstack__tracefile_header_init(&header, 7, 1, 0, 0, "cmd arg"), 0);
	memcpy(file, &header, sizeof(header));
	memcpy(file + INCSTACK__TRACEFILE_HEADER_BYTES, &slot, sizeof(slot));
	file_bytes = INCSTACK__TRACEFILE_START;
}

static inline void append(int64_t bytes)
{
	ck_assert_int_gt(bytes, 0);
	file_bytes += (size_t)bytes;
}

static inline void append_modules(uint32_t epoch)
{
	struct incstack__tracefile_modules modules;

	ck_assert_int_eq(incstack__tracefile_modules_begin(&modules, file + file_bytes,
							   sizeof(file) - file_bytes, epoch),
			 0);
	ck_assert_int_eq(
		incstack__tracefile_modules_add(&modules, "/bin/b", 0, 0x600000, 0x800000, NULL),
		0);
	ck_assert_int_eq(
		incstack__tracefile_modules_add(&modules, "/bin/a", 0, 0x400000, 0x500000, NULL),
		0);
	append(incstack__tracefile_modules_finish(&modules, 0));
}

static inline void append_batch(struct made *made, uint32_t thread, uint64_t stamp)
{
	uint64_t words[TRACES * 32];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));

	for (uint64_t i = 0; i < TRACES; i++) {
		ck_assert_int_eq(incstack__tracefile_put_alloc(&log, stamp + 10 * i,
							       0x1000 + 16 * i, 8 + i, i),
				 0);
		ck_assert_int_eq(
			incstack__tracefile_put_free(&log, stamp + 10 * i + 4, 0x1000 + 16 * i), 0);
	}
	append(put_batch(file + file_bytes, sizeof(file) - file_bytes, &log, thread, 1,
			 &made->tree));
	ck_assert_uint_eq(log.used, 0);
}

static inline void append_end(void)
{
	const struct incstack__tracefile_tally earlier = {.samples = TRACES, .returns = 3};
	const struct incstack__tracefile_tally end = {
		.flags = INCSTACK__TRACEFILE_TALLY_PROCESS, .samples = 2 * TRACES, .returns = 5};

	append(incstack__tracefile_tally(file + file_bytes, sizeof(file) - file_bytes, 0,
					 &earlier));
	append(incstack__tracefile_tally(file + file_bytes, sizeof(file) - file_bytes, 0, &end));
}

static inline void make_file(struct made made[2], uint64_t seed)
{
	start_file();
	append_modules(1);
	make_tree(&made[0], seed);
	make_tree(&made[1], seed + 1);
	append_batch(&made[0], 1, 1000);
	append_batch(&made[1], 2, 1005);
	append_end();
}

#endif
