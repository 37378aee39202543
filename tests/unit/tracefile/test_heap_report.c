/* SPDX-License-Identifier: MIT
 *
 * Tests the replay of an example worked out by hand, with two threads and a known peak.
 *
 *   main(0x100) -> a(0x200) -> x(0x300)     thread 1
 *   main(0x100) -> b(0x400)                 thread 2
 *
 *   stamp  10 t1 alloc p1 100 by x     live 100
 *          20 t2 alloc p2  50 by b     live 150
 *          30 t1 alloc p3 200 by x     live 350   the peak: x 300, b 50
 *          40 t2 free  p1              live 250   another thread frees
 *          50 t1 free  p3              live  50
 *          60 t2 alloc p1  70 by b     live 120   the address comes back
 *          70 t1 free  p9              unknown
 *          80 t2 alloc p1  30 by b     live  80   a free was not seen
 */
#include <stdlib.h>

#include "tracefile/replay.h"
#include "run_suite.h"
#include "tracefile_batch.h"

static unsigned char file[1 << 18];
static size_t file_bytes;
static struct incstack__replay replay;
static struct incstack__tracefile_reader *reader;

static void append(int64_t bytes)
{
	ck_assert_int_gt(bytes, 0);
	file_bytes += (size_t)bytes;
}

static void write_thread(uint32_t thread, struct incstack_tree *tree,
			 struct incstack__tracefile_log *log)
{
	append(put_batch(file + file_bytes, sizeof(file) - file_bytes, log, thread, 1, tree));
}

static void start_file(uint64_t interval)
{
	struct incstack__tracefile_header header;

	memset(file, 0, sizeof(file));
	incstack__tracefile_header_init(&header, 1, 1, interval, 0, "example");
	memcpy(file, &header, sizeof(header));
	file_bytes = INCSTACK__TRACEFILE_START;
}

static void write_file(uint64_t interval)
{
	struct incstack_frame_object main_1 = {
		.position = -1, .function = 0x100, .flags = INCSTACK_OBJECT_BASE};
	struct incstack_frame_object main_2 = main_1;
	struct incstack_frame_object a = {.position = -1, .parent = &main_1, .function = 0x200};
	struct incstack_frame_object x = {.position = -1, .parent = &a, .function = 0x300};
	struct incstack_frame_object b = {.position = -1, .parent = &main_2, .function = 0x400};
	struct incstack_trace t1[2] = {{.next = &t1[1], .top = &x}, {.top = &x}};
	struct incstack_trace t2[3] = {
		{.next = &t2[1], .top = &b}, {.next = &t2[2], .top = &b}, {.top = &b}};
	struct incstack_tree one = {t1, 2, 3, 0};
	struct incstack_tree two = {t2, 3, 2, 0};
	uint64_t words[64];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));

	start_file(interval);
	incstack__tracefile_put_alloc(&log, 10, 1, 100, 0);
	incstack__tracefile_put_alloc(&log, 30, 3, 200, 1);
	incstack__tracefile_put_free(&log, 50, 3);
	incstack__tracefile_put_free(&log, 70, 9);
	write_thread(1, &one, &log);
	incstack__tracefile_put_alloc(&log, 20, 2, 50, 0);
	incstack__tracefile_put_free(&log, 40, 1);
	incstack__tracefile_put_alloc(&log, 60, 1, 70, 1);
	incstack__tracefile_put_alloc(&log, 80, 1, 30, 2);
	write_thread(2, &two, &log);
}

static void run_written(void)
{
	struct incstack__tracefile_problem problem;

	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	ck_assert_int_eq(incstack__replay_run(&replay, reader, 0), 0);
}

static void run(uint64_t interval)
{
	write_file(interval);
	run_written();
}

static void finish(void)
{
	incstack__replay_free(&replay);
	incstack__tracefile_close(reader);
}

static const struct incstack__cct_values *values_of(uint64_t one, uint64_t two, uint64_t three)
{
	const uint64_t path[3] = {one, two, three};
	uint32_t node = INCSTACK__CCT_ROOT;

	for (int i = 0; i < 3 && path[i] != 0; i++)
		node = incstack__cct_child(&replay.cct, node, path[i]);
	return &replay.cct.nodes[node].values;
}

/* What a thread did last is known over its batches, whatever others do in between. */
START_TEST(batches_go_on)
{
	struct incstack_frame_object bases[3];
	struct incstack_frame_object a = {.position = -1, .parent = &bases[0], .function = 0x200};
	struct incstack_frame_object x = {.position = -1, .parent = &a, .function = 0x300};
	struct incstack_frame_object b = {.position = -1, .parent = &bases[1], .function = 0x400};
	struct incstack_trace traces[] = {{.top = &x}, {.top = &b}, {.top = &bases[2]}};
	struct incstack_tree trees[] = {
		{&traces[0], 1, 3, 0}, {&traces[1], 1, 2, 0}, {&traces[2], 1, 1, 0}};
	uint64_t words[64];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));

	for (size_t i = 0; i < 3; i++)
		bases[i] = (struct incstack_frame_object){
			.position = -1, .function = 0x100, .flags = INCSTACK_OBJECT_BASE};
	start_file(0);
	incstack__tracefile_put_alloc(&log, 10, 1, 100, 0);
	write_thread(1, &trees[0], &log);
	incstack__tracefile_put_alloc(&log, 20, 2, 50, 0);
	write_thread(2, &trees[2], &log);
	incstack__tracefile_put_free(&log, 30, 1);
	incstack__tracefile_put_alloc(&log, 40, 3, 50, 0);
	write_thread(1, &trees[1], &log);
	run_written();
	ck_assert_uint_eq(replay.frees, 1);
	ck_assert_uint_eq(replay.temporary, 1);
	ck_assert_uint_eq(replay.popped_count, 1);
	ck_assert_uint_eq(replay.popped_sum, 2); /* x and a */
	finish();
}
END_TEST

START_TEST(totals_are_as_worked_out)
{
	run(0);
	ck_assert_uint_eq(replay.calls, 5);
	ck_assert_uint_eq(replay.bytes, 450);
	ck_assert_uint_eq(replay.peak, 350);
	ck_assert_uint_eq(replay.peak_stamp, 30);
	ck_assert_uint_eq(replay.live, 80);
	ck_assert_uint_eq(replay.frees, 3);
	ck_assert_uint_eq(replay.unknown_frees, 1);
	ck_assert_uint_eq(replay.implied_frees, 1);
	finish();
}
END_TEST

START_TEST(contexts_are_as_worked_out)
{
	const struct incstack__cct_values *values;

	run(0);
	ck_assert_uint_eq(replay.cct.count, 5); /* root, main, a, x, b */
	values = values_of(0x100, 0x200, 0x300);
	ck_assert_uint_eq(values->calls, 2);
	ck_assert_uint_eq(values->bytes, 300);
	ck_assert_uint_eq(values->peak, 300);
	ck_assert_uint_eq(values->live, 0);
	values = values_of(0x100, 0x400, 0);
	ck_assert_uint_eq(values->calls, 3);
	ck_assert_uint_eq(values->bytes, 150);
	ck_assert_uint_eq(values->peak, 50);
	ck_assert_uint_eq(values->live, 80);
	ck_assert_uint_eq(replay.cct.count, 5);
	finish();
}
END_TEST

START_TEST(threads_are_as_worked_out)
{
	static const struct incstack__share_of_thread all[] = {{1, 2, 300, 0}, {2, 3, 150, 80}};

	run(0);
	ck_assert_uint_eq(replay.shares.thread_count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(replay.shares.threads[i].number, all[i].number);
		ck_assert_uint_eq(replay.shares.threads[i].calls, all[i].calls);
		ck_assert_uint_eq(replay.shares.threads[i].bytes, all[i].bytes);
		ck_assert_uint_eq(replay.shares.threads[i].live, all[i].live);
	}
	finish();
}
END_TEST

START_TEST(sizes_are_as_worked_out)
{
	static const struct incstack__share_of_size all[INCSTACK__SHARES_SIZES] = {
		[5] = {1, 30}, [6] = {1, 50}, [7] = {2, 170}, [8] = {1, 200}};

	run(0);
	for (size_t i = 0; i < INCSTACK__SHARES_SIZES; i++) {
		ck_assert_uint_eq(replay.shares.sizes[i].calls, all[i].calls);
		ck_assert_uint_eq(replay.shares.sizes[i].bytes, all[i].bytes);
	}
	finish();
}
END_TEST

/* Sizes at the borders of the classes, and one that is larger than all of them. */
START_TEST(sizes_have_classes)
{
	static const struct {
		uint64_t size;
		unsigned class;
	} all[] = {{0, 0},          {1, 1}, {2, 2}, {3, 2}, {4, 3}, {UINT64_C(1) << 40, 41},
		   {UINT64_MAX, 47}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct incstack__shares shares = {0};

		incstack__shares_size(&shares, all[i].size, 1, 7);
		ck_assert_uint_eq(shares.sizes[all[i].class].bytes, 7);
	}
}
END_TEST

/* Threads come in any order and with any numbers. */
START_TEST(many_threads_are_found_again)
{
	struct incstack__shares shares;

	ck_assert_int_eq(incstack__shares_init(&shares), 0);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 1000; i++)
			ck_assert_uint_eq(incstack__shares_thread(&shares, i * 2654435761u), i);
	ck_assert_uint_eq(shares.thread_count, 1000);
	incstack__shares_free(&shares);
}
END_TEST

START_TEST(means_are_as_worked_out)
{
	run(0);
	/* Depths 3, 3 and 2, 2, 2; no thread's next trace loses a frame. */
	ck_assert_double_eq_tol(incstack__replay_depth_mean(&replay), 12.0 / 5, 1e-9);
	ck_assert_uint_eq(replay.popped_sum, 0);
	finish();
}
END_TEST

/* x, then b, then x in one thread: x leaves a and x behind, b leaves b. */
START_TEST(popped_frames_are_counted)
{
	struct incstack_frame_object outer = {
		.position = -1, .function = 0x100, .flags = INCSTACK_OBJECT_BASE};
	struct incstack_frame_object a = {.position = -1, .parent = &outer, .function = 0x200};
	struct incstack_frame_object x = {.position = -1, .parent = &a, .function = 0x300};
	struct incstack_frame_object b = {.position = -1, .parent = &outer, .function = 0x400};
	struct incstack_trace traces[3] = {
		{.next = &traces[1], .top = &x}, {.next = &traces[2], .top = &b}, {.top = &x}};
	struct incstack_tree tree = {traces, 3, 4, 0};
	uint64_t words[64];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	struct incstack__tracefile_problem problem;

	write_file(0);
	file_bytes = INCSTACK__TRACEFILE_START;
	for (uint64_t i = 0; i < 3; i++)
		incstack__tracefile_put_alloc(&log, i, 16 + i, 1, i);
	write_thread(1, &tree, &log);
	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	ck_assert_int_eq(incstack__replay_run(&replay, reader, 0), 0);
	ck_assert_uint_eq(replay.popped_sum, 3);
	ck_assert_uint_eq(replay.popped_count, 2);
	ck_assert_double_eq_tol(incstack__replay_depth_mean(&replay), 8.0 / 3, 1e-9);
	finish();
}
END_TEST

/* s bytes stand for s / (1 - exp(-s / 100)): 100 for 158, 200 for 231, 50 for 127, 70 for
 * 139, 30 for 116; a context's calls are rounded down, their sum is not. */
START_TEST(an_interval_scales_bytes_and_calls)
{
	run(100);
	ck_assert_uint_eq(replay.calls, 2 + 8);
	ck_assert_uint_eq(replay.bytes, 158 + 231 + 127 + 139 + 116);
	ck_assert_uint_eq(replay.peak, 158 + 127 + 231);
	ck_assert_uint_eq(replay.live, 127 + 116);
	finish();
}
END_TEST

/* Sizes that no program asks for. Sums stay at the largest value, those over the nodes, too. */
START_TEST(sizes_without_bounds_do_not_wrap)
{
	static const uint64_t sizes[] = {100, UINT64_MAX, (uint64_t)INT64_MAX, UINT64_MAX - 1, 5};
	const uint64_t count = sizeof(sizes) / sizeof(sizes[0]);
	const uint64_t intervals[] = {0, 1000, UINT64_MAX};
	struct incstack_frame_object outer = {
		.position = -1, .function = 0x100, .flags = INCSTACK_OBJECT_BASE};
	struct incstack_frame_object inner = {.position = -1, .parent = &outer, .function = 0x200};
	struct incstack_trace traces[2] = {{.next = &traces[1], .top = &inner}, {.top = &outer}};
	struct incstack_tree tree = {traces, 2, 2, 0};
	struct incstack__cct_values sum = {0};
	uint64_t words[64];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));

	start_file(intervals[_i]);
	for (uint64_t i = 0; i < count; i++)
		incstack__tracefile_put_alloc(&log, i, 16 * (i + 1), sizes[i], i % 2);
	for (uint64_t i = 0; i < count; i++)
		incstack__tracefile_put_free(&log, count + i, 16 * (i + 1));
	write_thread(1, &tree, &log);
	run_written();
	for (uint32_t i = 0; i < replay.cct.count; i++) {
		ck_assert_uint_le(replay.cct.nodes[i].values.bytes, INT64_MAX - sum.bytes);
		ck_assert_uint_le(replay.cct.nodes[i].values.calls, INT64_MAX - sum.calls);
		sum.bytes += replay.cct.nodes[i].values.bytes;
		sum.calls += replay.cct.nodes[i].values.calls;
	}
	ck_assert_uint_eq(sum.bytes, INT64_MAX);
	ck_assert_uint_eq(replay.bytes, INT64_MAX);
	ck_assert_uint_eq(replay.peak, INT64_MAX);
	ck_assert_uint_eq(replay.live, 0);
	ck_assert_uint_eq(replay.calls, sum.calls);
	ck_assert_uint_ge(replay.calls, count);
	finish();
}
END_TEST

/* Different for different i, and at random in the table. */
static uint64_t scattered(uint64_t i)
{
	return 0x1000 + 16 * (i * 2654435761u % (1u << 30));
}

/* In a table with collisions, removing an entry must not hide those that stay. */
START_TEST(many_pointers_are_found_again)
{
	static uint64_t words[8 * 40000];
	static unsigned char big[sizeof(words) + 4096];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	struct incstack__tracefile_problem problem;

	write_file(0);
	file_bytes = INCSTACK__TRACEFILE_START;
	for (uint64_t i = 0; i < 30000; i++) {
		incstack__tracefile_put_alloc(&log, i, scattered(i), 1,
					      INCSTACK__TRACEFILE_NO_TRACE);
		if (i % 3 == 2)
			incstack__tracefile_put_free(&log, i, scattered(i / 2));
	}
	const int64_t bytes = put_batch(big, sizeof(big), &log, 1, 1, NULL);
	unsigned char *whole = malloc(file_bytes + (size_t)bytes);

	ck_assert_int_gt(bytes, 0);
	memcpy(whole, file, file_bytes);
	memcpy(whole + file_bytes, big, (size_t)bytes);
	ck_assert_int_eq(
		incstack__tracefile_open(whole, file_bytes + (size_t)bytes, &reader, &problem), 0);
	ck_assert_int_eq(incstack__replay_run(&replay, reader, 0), 0);
	ck_assert_uint_eq(replay.unknown_frees, 0);
	ck_assert_uint_eq(replay.implied_frees, 0);
	ck_assert_uint_eq(replay.live, 20000);
	ck_assert_uint_eq(replay.table_used, 20000);
	finish();
	free(whole);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("heap_report");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, totals_are_as_worked_out);
	tcase_add_test(tests, batches_go_on);
	tcase_add_test(tests, contexts_are_as_worked_out);
	tcase_add_test(tests, threads_are_as_worked_out);
	tcase_add_test(tests, sizes_are_as_worked_out);
	tcase_add_test(tests, sizes_have_classes);
	tcase_add_test(tests, many_threads_are_found_again);
	tcase_add_test(tests, means_are_as_worked_out);
	tcase_add_test(tests, popped_frames_are_counted);
	tcase_add_test(tests, an_interval_scales_bytes_and_calls);
	tcase_add_loop_test(tests, sizes_without_bounds_do_not_wrap, 0, 3);
	tcase_add_test(tests, many_pointers_are_found_again);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
