/* SPDX-License-Identifier: MIT
 *
 * Tests the reader and the replay of heap traces while the Nth allocation fails, for every N:
 * the result is ENOMEM, or the same as with memory. Also tests how much memory threads need that
 * come and go one after another.
 */
#include <malloc.h>

#include "tracefile/packed.h"
#include "tracefile/replay.h"
#include "failing.h"
#include "run_suite.h"
#include "tracefile_batch.h"

enum { THREADS = 3, BATCHES = 4, TRACES = 150, FRAMES = 5 };

static unsigned char file[1 << 20];
static size_t file_bytes;

static void append(int64_t bytes)
{
	ck_assert_int_gt(bytes, 0);
	file_bytes += (size_t)bytes;
}

static void write_modules(uint32_t epoch)
{
	struct incstack__tracefile_modules modules;

	ck_assert_int_eq(incstack__tracefile_modules_begin(&modules, file + file_bytes,
							   sizeof(file) - file_bytes, epoch),
			 0);
	ck_assert_int_eq(
		incstack__tracefile_modules_add(&modules, "/bin/one", 0, 0x1000, 0x200000, NULL),
		0);
	ck_assert_int_eq(incstack__tracefile_modules_add(&modules, "/lib/two", 0x200000, 0x200000,
							 0x400000, NULL),
			 0);
	append(incstack__tracefile_modules_finish(&modules, 1));
}

/* Each trace has a context of its own, and what it allocates stays. */
static void write_batch(uint32_t thread, uint32_t batch)
{
	static struct incstack_frame_object frames[TRACES][FRAMES];
	static struct incstack_trace traces[TRACES];
	static uint64_t words[16 * TRACES];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	const struct incstack_tree tree = {traces, TRACES, (uint64_t)TRACES * FRAMES, 0};

	for (uint64_t i = 0; i < TRACES; i++) {
		const uint64_t number = ((uint64_t)thread * BATCHES + batch) * TRACES + i;

		for (uint64_t f = 0; f < FRAMES; f++)
			frames[i][f] = (struct incstack_frame_object){
				f + 1 < FRAMES ? &frames[i][f + 1] : NULL,
				0x2000 + number * FRAMES * 8 + f * 8, 0, -1,
				f + 1 < FRAMES ? 0 : INCSTACK_OBJECT_BASE};
		traces[i] = (struct incstack_trace){.next = i + 1 < TRACES ? &traces[i + 1] : NULL,
						    .top = &frames[i][0]};
		incstack__tracefile_put_alloc(&log, 1000 * batch + 2 * i + thread,
					      0x10000 + number * 16, 8, i);
	}
	append(put_batch(file + file_bytes, sizeof(file) - file_bytes, &log, thread, batch, &tree));
}

static void write_header(void)
{
	struct incstack__tracefile_header header;

	incstack__tracefile_header_init(&header, 1, 1, 0, 0, "example");
	memcpy(file, &header, sizeof(header));
	file_bytes = INCSTACK__TRACEFILE_START;
}

static void write_file(void)
{
	write_header();
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		write_modules(batch);
		for (uint32_t thread = 1; thread <= THREADS; thread++)
			write_batch(thread, batch);
	}
}

static int replay_scenario(long n, bool for_ever, bool *something_failed)
{
	struct incstack__tracefile_reader *reader = NULL;
	struct incstack__tracefile_problem problem;
	struct incstack__replay replay;
	int result;

	arm(n, for_ever);
	result = incstack__tracefile_open(file, file_bytes, &reader, &problem);
	if (result == 0) {
		result = incstack__replay_run(&replay, reader, 0);
		*something_failed = disarm();
		if (result == 0) {
			ck_assert_uint_eq(replay.calls, THREADS * BATCHES * TRACES);
			ck_assert_uint_eq(replay.live, 8 * replay.calls);
			ck_assert_uint_eq(replay.cct.count, 1 + replay.calls * FRAMES);
			ck_assert_uint_eq(incstack__tracefile_reader_totals(reader)->damaged, 0);
		}
		incstack__replay_free(&replay);
		incstack__tracefile_close(reader);
	}
	*something_failed = disarm();
	return result;
}

START_TEST(reader_and_replay)
{
	write_file();
	fail_each_allocation(replay_scenario, 20);
}
END_TEST

/* zstd allocates, too. */
START_TEST(reader_of_a_packed_file)
{
	char *packed = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&packed, &bytes);

	write_file();
	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(incstack__tracefile_pack(file, file_bytes, out), 0);
	ck_assert_int_eq(fclose(out), 0);
	memcpy(file, packed, bytes);
	file_bytes = bytes;
	free(packed);
	fail_each_allocation(replay_scenario, 20);
}
END_TEST

/* The maximum number of bytes that reading holds at one time. */
static size_t bytes_for_threads(uint32_t threads)
{
	struct incstack__tracefile_reader *reader = NULL;
	struct incstack__tracefile_problem problem;
	struct incstack__tracefile_event event;
	const size_t before = mallinfo2().uordblks;
	size_t most = 0;
	uint64_t events = 0;

	write_header();
	for (uint32_t thread = 1; thread <= threads; thread++)
		write_batch(thread, thread); /* stamps behind those of the thread before */
	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	for (; incstack__tracefile_next(reader, &event) == 1; events++)
		if (mallinfo2().uordblks - before > most)
			most = mallinfo2().uordblks - before;
	ck_assert_uint_eq(events, (uint64_t)threads * TRACES);
	incstack__tracefile_close(reader);
	return most;
}

START_TEST(threads_that_came_and_went)
{
	enum { CURSOR_BYTES = 512 };
	const size_t few = bytes_for_threads(8);
	const size_t many = bytes_for_threads(128);

	ck_assert_uint_le(many, few + 120 * CURSOR_BYTES);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("heap traces without memory");
	TCase *all = tcase_create("all");

	tcase_add_test(all, reader_and_replay);
	tcase_add_test(all, reader_of_a_packed_file);
	tcase_add_test(all, threads_that_came_and_went);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
