/* SPDX-License-Identifier: MIT
 *
 * Tests that the reader of trace files returns what the encoder wrote, and detects any damage.
 */
#include <stdlib.h>

#include "../../src/tracefile/replay.h"
#include "../../src/tracefile/notes.h"
#include "run_suite.h"
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
static void make_tree(struct made *made, uint64_t seed)
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

static void start_file(void)
{
	struct incstack__tracefile_header header;
	struct incstack__tracefile_slot slot = {.samples_started = 2 * TRACES};

	memset(file, 0, sizeof(file));
	ck_assert_int_eq(incstack__tracefile_header_init(&header, 7, 1, 0, 0, "cmd arg"), 0);
	memcpy(file, &header, sizeof(header));
	memcpy(file + INCSTACK__TRACEFILE_HEADER_BYTES, &slot, sizeof(slot));
	file_bytes = INCSTACK__TRACEFILE_START;
}

static void append(int64_t bytes)
{
	ck_assert_int_gt(bytes, 0);
	file_bytes += (size_t)bytes;
}

static void append_modules(uint32_t epoch)
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

static void append_batch(struct made *made, uint32_t thread, uint64_t stamp)
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

static void append_end(void)
{
	const struct incstack__tracefile_tally earlier = {.samples = TRACES, .returns = 3};
	const struct incstack__tracefile_tally end = {
		.flags = INCSTACK__TRACEFILE_TALLY_PROCESS, .samples = 2 * TRACES, .returns = 5};

	append(incstack__tracefile_tally(file + file_bytes, sizeof(file) - file_bytes, 0,
					 &earlier));
	append(incstack__tracefile_tally(file + file_bytes, sizeof(file) - file_bytes, 0, &end));
}

static void make_file(struct made made[2], uint64_t seed)
{
	start_file();
	append_modules(1);
	make_tree(&made[0], seed);
	make_tree(&made[1], seed + 1);
	append_batch(&made[0], 1, 1000);
	append_batch(&made[1], 2, 1005);
	append_end();
}

static void check_alloc(const struct made *made, const struct incstack__tracefile_event *event)
{
	const struct incstack__tracefile_chunk *chunk = event->chunk;
	uint32_t object = chunk->top[event->trace];
	uint32_t depth = 0;

	ck_assert_uint_eq(event->size, 8 + event->trace);
	ck_assert_uint_eq(event->pointer, 0x1000 + 16 * event->trace);
	for (; object != INCSTACK__TRACEFILE_NO_PARENT; object = chunk->parent[object]) {
		ck_assert_uint_eq(chunk->pc[object], made->pcs[event->trace][depth++]);
		if (chunk->parent[object] == INCSTACK__TRACEFILE_NO_PARENT)
			ck_assert_uint_eq(chunk->flags[object], INCSTACK__TRACEFILE_PARENT_BASE);
	}
	ck_assert_uint_eq(depth, made->depth[event->trace]);
}

START_TEST(round_trip)
{
	static struct made made[2];
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__tracefile_event event;
	uint64_t stamp = 0;
	uint64_t allocs = 0;
	uint64_t frees = 0;

	make_file(made, (uint64_t)_i);
	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	ck_assert_str_eq(incstack__tracefile_reader_header(reader)->command, "cmd arg");
	while (incstack__tracefile_next(reader, &event) == 1) {
		ck_assert_uint_ge(event.stamp, stamp);
		stamp = event.stamp;
		allocs += event.kind == INCSTACK__TRACEFILE_ALLOC;
		frees += event.kind == INCSTACK__TRACEFILE_FREE;
		if (event.kind == INCSTACK__TRACEFILE_ALLOC)
			check_alloc(&made[event.thread - 1], &event);
	}
	ck_assert_uint_eq(allocs, 2 * TRACES);
	ck_assert_uint_eq(frees, 2 * TRACES);
	ck_assert_ptr_null(incstack__tracefile_reader_problem(reader).what);
	ck_assert_uint_eq(incstack__tracefile_reader_totals(reader)->traces, 2 * TRACES);
	ck_assert_uint_eq(incstack__tracefile_reader_totals(reader)->started, 2 * TRACES);
	ck_assert_uint_eq(incstack__tracefile_reader_totals(reader)->tally.returns, 5);
	incstack__tracefile_close(reader);
}
END_TEST

START_TEST(notes_of_all_slots_are_read)
{
	static struct made made[2];
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__tracefile_slot *slots;

	make_file(made, 1);
	slots = (struct incstack__tracefile_slot *)(void *)(file +
							    INCSTACK__TRACEFILE_HEADER_BYTES);
	slots[0].notes = 1u << INCSTACK__NOTE_SECCOMP;
	slots[INCSTACK__TRACEFILE_SLOTS - 1].notes = 1u << INCSTACK__NOTE_FILE_FULL;
	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	ck_assert_uint_eq(incstack__tracefile_reader_totals(reader)->notes,
			  1u << INCSTACK__NOTE_SECCOMP | 1u << INCSTACK__NOTE_FILE_FULL);
	ck_assert_ptr_null(incstack__tracefile_reader_problem(reader).what);
	incstack__tracefile_close(reader);
	for (unsigned note = 0; note < INCSTACK__NOTE_COUNT; note++)
		ck_assert_ptr_nonnull(incstack__tracefile_note_text(note));
	ck_assert_ptr_null(incstack__tracefile_note_text(INCSTACK__NOTE_COUNT));
}
END_TEST

/* Reads everything. Returns whether anything was noticed. */
static int damage_noticed(const unsigned char *data, size_t size)
{
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__replay replay;
	const struct incstack__tracefile_totals *totals;
	int noticed;

	if (incstack__tracefile_open(data, size, &reader, &problem) != 0)
		return problem.what != NULL;
	ck_assert_int_eq(incstack__replay_run(&replay, reader, 0), 0);
	totals = incstack__tracefile_reader_totals(reader);
	noticed = incstack__tracefile_reader_problem(reader).what != NULL ||
		  totals->truncated_bytes > 0 || totals->notes != 0 || totals->interrupting != 0 ||
		  totals->in_return != 0 || totals->unwound != 0 || totals->failed_calls != 0 ||
		  !(totals->tally.flags & INCSTACK__TRACEFILE_TALLY_PROCESS) ||
		  totals->started != totals->traces;
	incstack__replay_free(&replay);
	incstack__tracefile_close(reader);
	return noticed;
}

START_TEST(every_flipped_byte_is_noticed)
{
	static struct made made[2];

	make_file(made, 1);
	ck_assert_int_eq(damage_noticed(file, file_bytes), 0);
	for (size_t at = 0; at < file_bytes; at++) {
		/* Most of the counters area is alike. */
		if (at > INCSTACK__TRACEFILE_HEADER_BYTES + 256 &&
		    at < INCSTACK__TRACEFILE_START - 64)
			continue;
		file[at] ^= (unsigned char)(1 << (at % 8));
		ck_assert_msg(damage_noticed(file, file_bytes), "flip at %zu", at);
		file[at] ^= (unsigned char)(1 << (at % 8));
	}
}
END_TEST

START_TEST(every_truncation_is_noticed)
{
	static struct made made[2];
	unsigned char *copy;

	make_file(made, 2);
	for (size_t size = 0; size < file_bytes; size++) {
		if (size > 64 && size < INCSTACK__TRACEFILE_START - 64)
			continue;
		/* A copy of the exact size, so that the sanitizer sees any read behind it. */
		copy = malloc(size + 1);
		memcpy(copy, file, size);
		ck_assert_msg(damage_noticed(copy, size), "cut at %zu", size);
		free(copy);
	}
}
END_TEST

static void reseal(size_t offset)
{
	struct incstack__tracefile_block block;

	memcpy(&block, file + offset, sizeof(block));
	if (block.length > file_bytes - offset - sizeof(block))
		return;
	block.checksum = incstack__tracefile_block_sum(block, file + offset + sizeof(block));
	memcpy(file + offset, &block, sizeof(block));
}

/* With correct checksums, only the checks of the decoders prevent a crash. Not every false value
 * can be recognized. */
START_TEST(lies_with_right_checksums_do_no_harm)
{
	static struct made made[2];
	struct incstack__tracefile_block block;
	size_t offset = INCSTACK__TRACEFILE_START;
	size_t noticed = 0;

	make_file(made, 3);
	for (; offset < file_bytes; offset += sizeof(block) + block.length) {
		memcpy(&block, file + offset, sizeof(block));
		for (size_t at = offset; at < offset + sizeof(block) + block.length; at++) {
			file[at] ^= (unsigned char)(1 << (at * 5 % 8));
			reseal(offset);
			noticed += (size_t)damage_noticed(file, file_bytes);
			file[at] ^= (unsigned char)(1 << (at * 5 % 8));
			reseal(offset);
		}
	}
	ck_assert_uint_gt(noticed, 100);
}
END_TEST

START_TEST(a_block_cut_off_is_counted)
{
	static struct made made[2];
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	size_t start;

	make_file(made, 4);
	start = file_bytes - sizeof(struct incstack__tracefile_block) -
		sizeof(struct incstack__tracefile_tally);
	for (size_t size = start; size < file_bytes; size++) {
		ck_assert_int_eq(incstack__tracefile_open(file, size, &reader, &problem), 0);
		ck_assert_uint_eq(incstack__tracefile_reader_totals(reader)->truncated_bytes,
				  size - start);
		ck_assert_ptr_null(incstack__tracefile_reader_problem(reader).what);
		incstack__tracefile_close(reader);
	}
}
END_TEST

/* The caller of object 0 is 1, and the caller of 1 is 0. */
START_TEST(a_ring_of_objects_is_refused)
{
	const unsigned char payload[] = {
		1 << INCSTACK__TRACEFILE_LENGTH_SHIFT | INCSTACK__TRACEFILE_PARENT_NEXT,
		2,
		1 << INCSTACK__TRACEFILE_LENGTH_SHIFT | INCSTACK__TRACEFILE_PARENT_NEAR,
		2,
		1,
		0};
	const struct incstack__tracefile_batch batch = {1, 2, 1, sizeof(payload), 0, 0};
	struct incstack__tracefile_block block = {.magic = INCSTACK__TRACEFILE_BLOCK_MAGIC,
						  .type = INCSTACK__TRACEFILE_BATCH,
						  .length = sizeof(batch) + sizeof(payload)};
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__tracefile_event event;

	start_file();
	memcpy(file + file_bytes + sizeof(block), &batch, sizeof(batch));
	memcpy(file + file_bytes + sizeof(block) + sizeof(batch), payload, sizeof(payload));
	block.checksum = incstack__tracefile_block_sum(block, file + file_bytes + sizeof(block));
	memcpy(file + file_bytes, &block, sizeof(block));
	file_bytes += sizeof(block) + block.length;
	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	ck_assert_int_eq(incstack__tracefile_next(reader, &event), 0);
	problem = incstack__tracefile_reader_problem(reader);
	ck_assert_ptr_nonnull(problem.what);
	ck_assert_str_eq(problem.what, "the parent of a frame object is malformed");
	ck_assert_uint_eq(problem.offset, INCSTACK__TRACEFILE_START);
	incstack__tracefile_close(reader);
}
END_TEST

START_TEST(too_small_a_buffer_can_be_tried_again)
{
	static struct made made[1];
	static uint64_t words[4096];
	const struct incstack__tracefile_batch_of of = {.thread = 1, .epoch = 1};
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	size_t enough;

	make_tree(made, 9);
	enough = incstack__tracefile_batch_bytes(&made->tree, 0);
	ck_assert_int_eq(incstack__tracefile_batch(file, enough - 1, of, &log, &made->tree),
			 INCSTACK_ENOMEM);
	ck_assert_int_gt(incstack__tracefile_batch(file, enough, of, &log, &made->tree), 0);
	ck_assert_int_eq(incstack__tracefile_batch(file, enough, of, NULL, &made->tree),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(
		incstack__tracefile_tally(file, 8, 0, &(struct incstack__tracefile_tally){0}),
		INCSTACK_ENOMEM);
}
END_TEST

/* The block is the same whether its events are copied or stay in the log. */
START_TEST(parts_make_the_same_block)
{
	static struct made made[2];
	static uint64_t words[64];
	static unsigned char whole[1 << 16], apart[1 << 16];
	const struct incstack__tracefile_batch_of of = {.thread = 1, .epoch = 2, .serial = 3};
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	struct iovec parts[INCSTACK__TRACEFILE_BATCH_PARTS];
	uint64_t seed = 11;
	int64_t bytes;
	size_t at = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = random_next(&seed);
	log.used = (size_t)_i * sizeof(words[0]);
	make_tree(&made[0], 5);
	make_tree(&made[1], 5);
	bytes = incstack__tracefile_batch(whole, sizeof(whole), of, &log, &made[0].tree);
	ck_assert_int_gt(bytes, 0);
	ck_assert_int_eq(incstack__tracefile_batch_parts(apart, sizeof(apart), of, &log,
							 &made[1].tree, parts),
			 bytes);
	for (int i = 0; i < INCSTACK__TRACEFILE_BATCH_PARTS; i++) {
		ck_assert_int_eq(memcmp(whole + at, parts[i].iov_base, parts[i].iov_len), 0);
		at += parts[i].iov_len;
	}
	ck_assert_uint_eq(at, (size_t)bytes);
	if (log.used >= 40) /* at most the first word and less than four of the last are copied */
		ck_assert_uint_ge(parts[1].iov_len, log.used - 8 - 24);
	if (parts[1].iov_len > 0)
		ck_assert_ptr_eq(parts[1].iov_base, &words[1]);
	ck_assert_uint_le((uintptr_t)parts[2].iov_base + parts[2].iov_len,
			  (uintptr_t)apart + sizeof(apart));
	ck_assert_int_eq(incstack__tracefile_batch_parts(apart, 8, of, &log, NULL, parts),
			 INCSTACK_ENOMEM);
	ck_assert_int_eq(incstack__tracefile_batch_parts(apart, 8, of, NULL, NULL, parts),
			 INCSTACK_EINVAL);
}
END_TEST

static void append_name(uint32_t thread, const char *name, uint64_t tid)
{
	struct incstack__tracefile_tally tally = {.tid = tid};

	memcpy(tally.name, name, strnlen(name, sizeof(tally.name)));
	append(incstack__tracefile_tally(file + file_bytes, sizeof(file) - file_bytes, thread,
					 &tally));
}

/* The last name of each thread counts, and is printable UTF-8 whatever the program has made of it. */
START_TEST(threads_have_the_names_that_they_had_last)
{
	static const struct {
		const char *given, *read;
		uint32_t group; /* the place of the first thread with that name */
	} names[] = {
		{"worker", "worker", 0},
		{"main", "main", 1},
		{"worker", "worker", 0},
		{"", "", 3},
		{"0123456789abcdefgh", "0123456789abcdef", 4},
		{"a\nb\x7f\xff", "a?b??", 5},
		{"\xc3\xb6\xe2\x82\xac", "\xc3\xb6\xe2\x82\xac", 6},
		{"cut \xe2\x82", "cut ??", 7},
		{"\xf0\x9f\x98\x80\x80\xc1\xbf", "\xf0\x9f\x98\x80???", 8},
	};
	const uint32_t count = sizeof(names) / sizeof(names[0]);
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;

	start_file();
	for (uint32_t i = count; i-- > 0;) {
		append_name(10 * i, "earlier", 1);
		append_name(10 * i, names[i].given, 100 + i);
	}
	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	for (uint32_t i = 0; i < count; i++) {
		const struct incstack__tracefile_thread *thread =
			incstack__tracefile_reader_thread(reader, 10 * i);

		ck_assert_ptr_nonnull(thread);
		ck_assert_str_eq(thread->name, names[i].read);
		ck_assert_uint_eq(thread->tid, 100 + i);
		ck_assert_uint_eq(thread->group, names[i].group);
		ck_assert_str_eq(incstack__tracefile_reader_name(reader, thread->group),
				 thread->name);
	}
	ck_assert_ptr_null(incstack__tracefile_reader_thread(reader, 5));
	ck_assert_str_eq(incstack__tracefile_reader_name(reader, count), "");
	incstack__tracefile_close(reader);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tracefile");
	TCase *tests = tcase_create("all");

	tcase_add_loop_test(tests, round_trip, 0, 20);
	tcase_add_test(tests, notes_of_all_slots_are_read);
	tcase_add_test(tests, every_flipped_byte_is_noticed);
	tcase_add_test(tests, every_truncation_is_noticed);
	tcase_add_test(tests, lies_with_right_checksums_do_no_harm);
	tcase_add_test(tests, a_block_cut_off_is_counted);
	tcase_add_test(tests, a_ring_of_objects_is_refused);
	tcase_add_test(tests, too_small_a_buffer_can_be_tried_again);
	tcase_add_loop_test(tests, parts_make_the_same_block, 0, 20);
	tcase_add_test(tests, threads_have_the_names_that_they_had_last);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
