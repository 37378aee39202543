/* SPDX-License-Identifier: MIT
 *
 * Tests that the reader of trace files returns what the encoder wrote.
 */
#include "tracefile/notes.h"
#include "run_suite.h"
#include "tracefile_made.h"

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
	tcase_add_test(tests, too_small_a_buffer_can_be_tried_again);
	tcase_add_loop_test(tests, parts_make_the_same_block, 0, 20);
	tcase_add_test(tests, threads_have_the_names_that_they_had_last);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
