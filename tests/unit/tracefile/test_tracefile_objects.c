/* SPDX-License-Identifier: MIT
 *
 * Tests how a batch of a trace file encodes frame objects: what it guesses right takes one byte,
 * and every distance between an object and its parent is read back.
 */
#include <stdlib.h>

#include "tracefile/read.h"
#include "run_suite.h"
#include "tracefile_batch.h"

enum { DEEP = 70000, TRACES = 3 };

struct made {
	struct incstack_frame_object objects[TRACES * DEEP];
	struct incstack_trace traces[TRACES];
	struct incstack_tree tree;
	unsigned char file[TRACES * DEEP * 16];
	size_t file_bytes;
	uint32_t objects_made;
};

/* Makes a chain of objects that ends below `parent`. Returns its first object. */
static struct incstack_frame_object *make_chain(struct made *made, uint64_t pc, uint64_t step,
						uint32_t length,
						struct incstack_frame_object *parent)
{
	struct incstack_frame_object *first = &made->objects[made->objects_made];

	for (uint32_t i = 0; i < length; i++)
		first[i] = (struct incstack_frame_object){
			.function = pc + i * step,
			.position = -1,
			.parent = i + 1 < length ? &first[i + 1] : parent,
			.flags = INCSTACK_OBJECT_FILLED |
				 (i + 1 < length || parent != NULL ? 0 : INCSTACK_OBJECT_BASE),
		};
	made->objects_made += length;
	return first;
}

static void add_trace(struct made *made, const struct incstack_frame_object *top)
{
	const uint64_t at = made->tree.count++;

	made->traces[at] = (struct incstack_trace){.top = top, .id = at};
	if (at > 0)
		made->traces[at - 1].next = &made->traces[at];
	made->tree.traces = made->traces;
	made->tree.objects = made->objects_made;
}

/* Writes a file with the one batch. Returns the bytes of its objects. */
static size_t write_file(struct made *made)
{
	uint64_t words[TRACES];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	struct incstack__tracefile_header header;
	struct incstack__tracefile_batch batch;
	int64_t bytes;

	for (uint64_t i = 0; i < made->tree.count; i++)
		ck_assert_int_eq(incstack__tracefile_put_alloc(&log, i, 16, 8, i), 0);
	ck_assert_int_eq(incstack__tracefile_header_init(&header, 7, 1, 0, 0, "program"), 0);
	memcpy(made->file, &header, sizeof(header));
	bytes = put_batch(made->file + INCSTACK__TRACEFILE_START,
			  sizeof(made->file) - INCSTACK__TRACEFILE_START, &log, 1, 1, &made->tree);
	ck_assert_int_gt(bytes, 0);
	made->file_bytes = INCSTACK__TRACEFILE_START + (size_t)bytes;
	memcpy(&batch,
	       made->file + INCSTACK__TRACEFILE_START + sizeof(struct incstack__tracefile_block),
	       sizeof(batch));
	return batch.object_bytes;
}

/* Whether the trace that was read has the same pcs as the one that was written. */
static void check_trace(const struct incstack_trace *made,
			const struct incstack__tracefile_event *event)
{
	const struct incstack__tracefile_chunk *chunk = event->chunk;
	uint32_t object = chunk->top[event->trace];
	const struct incstack_frame_object *frame = made->top;

	for (; frame != NULL; frame = frame->parent, object = chunk->parent[object]) {
		ck_assert_uint_ne(object, INCSTACK__TRACEFILE_NO_PARENT);
		ck_assert_uint_eq(chunk->pc[object], frame->function);
	}
	ck_assert_uint_eq(object, INCSTACK__TRACEFILE_NO_PARENT);
}

static void check_file(const struct made *made)
{
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__tracefile_event event;
	uint64_t events = 0;

	ck_assert_int_eq(incstack__tracefile_open(made->file, made->file_bytes, &reader, &problem),
			 0);
	while (incstack__tracefile_next(reader, &event) == 1) {
		check_trace(&made->traces[event.trace], &event);
		events++;
	}
	ck_assert_ptr_null(incstack__tracefile_reader_problem(reader).what);
	ck_assert_uint_eq(events, made->tree.count);
	incstack__tracefile_close(reader);
}

/* The same callers again: a byte for each object, and two for the distance to the parent. */
START_TEST(repeated_callers_take_a_byte_each)
{
	struct made *made = calloc(1, sizeof(*made));
	struct incstack_frame_object *outermost;
	size_t first;
	size_t second;

	ck_assert_ptr_nonnull(made);
	outermost = make_chain(made, 0x401000, 0, 1, NULL);
	add_trace(made, make_chain(made, 0x7f0000402000, 64, 100, outermost));
	first = write_file(made);
	ck_assert_uint_gt(first, 200);
	for (uint32_t i = 0; i < made->objects_made; i++)
		made->objects[i].position = -1;
	add_trace(made, make_chain(made, 0x7f0000402000, 64, 100, outermost));
	second = write_file(made);
	check_file(made);
	/* Its first object follows another pc than that of the first trace. */
	ck_assert_uint_le(second - first, 1 + 6 + 99 + 2);
	free(made);
}
END_TEST

/* Around the largest distance that two bytes hold. */
START_TEST(a_parent_may_be_far_back)
{
	struct made *made = calloc(1, sizeof(*made));
	struct incstack_frame_object *chain;

	ck_assert_ptr_nonnull(made);
	chain = make_chain(made, 0x401000, 16, DEEP, NULL);
	add_trace(made, chain);
	/* These objects get the numbers DEEP and DEEP + 1. */
	add_trace(made, make_chain(made, 0x501000, 0, 1, &chain[DEEP - UINT16_MAX]));
	add_trace(made, make_chain(made, 0x502000, 0, 1, &chain[DEEP + 1 - UINT16_MAX - 1]));
	write_file(made);
	check_file(made);
	free(made);
}
END_TEST

/* A trace that shares all objects of an earlier trace, or begins in its middle, takes three bytes, or
 * five if it is far back. */
START_TEST(a_shared_trace_takes_a_few_bytes)
{
	struct made *made = calloc(1, sizeof(*made));
	struct incstack_frame_object *chain;
	const uint32_t depth = _i == 0 ? 100 : DEEP;
	size_t once;

	ck_assert_ptr_nonnull(made);
	chain = make_chain(made, 0x401000, 16, depth, NULL);
	add_trace(made, chain);
	once = write_file(made);
	for (uint32_t i = 0; i < made->objects_made; i++)
		made->objects[i].position = -1;
	add_trace(made, chain);
	add_trace(made, &chain[depth - 10]);
	ck_assert_uint_eq(write_file(made) - once, _i == 0 ? 3 + 3 : 5 + 3);
	check_file(made);
	free(made);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("objects of trace files");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, repeated_callers_take_a_byte_each);
	tcase_add_test(tests, a_parent_may_be_far_back);
	tcase_add_loop_test(tests, a_shared_trace_takes_a_few_bytes, 0, 2);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
