/* SPDX-License-Identifier: MIT
 *
 * Tests the reader of a spool: it returns everything that is whole, and of the rest as much as
 * is certain.
 */
#include <stdlib.h>

#include "tracefile/replay.h"
#include "tracefile/spool_read.h"
#include "run_suite.h"
#include "spool_made.h"

static _Alignas(64) unsigned char spool[MADE_BYTES];
static unsigned char file[INCSTACK__TRACEFILE_START + (1 << 16)];
static size_t file_bytes;
static struct incstack__tracefile_header header;
static struct incstack__replay replay;
static struct incstack__tracefile_reader *reader;

static void make(void)
{
	memset(spool, 0, sizeof(spool));
	memset(file, 0, sizeof(file));
	incstack__tracefile_header_init(&header, 7, 8, 0, 0, "spool");
	make_spool(spool, &header);
	memcpy(file, &header, sizeof(header));
	file_bytes = INCSTACK__TRACEFILE_START;
}

/* Appends what the spool holds to the file. */
static void recover(void)
{
	unsigned char *blocks;
	size_t bytes;

	ck_assert_int_eq(incstack__spool_recover(spool, sizeof(spool), &header, &blocks, &bytes),
			 0);
	ck_assert_uint_le(bytes, sizeof(file) - file_bytes);
	memcpy(file + file_bytes, blocks, bytes);
	file_bytes += bytes;
	free(blocks);
}

static void read_file(void)
{
	struct incstack__tracefile_problem problem;

	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	ck_assert_int_eq(incstack__replay_run(&replay, reader, 0), 0);
	ck_assert_ptr_null(incstack__tracefile_reader_problem(reader).what);
}

static void close_file(void)
{
	incstack__replay_free(&replay);
	incstack__tracefile_close(reader);
}

static const struct incstack__tracefile_totals *totals(void)
{
	return incstack__tracefile_reader_totals(reader);
}

static struct incstack_frame_object *object(uint64_t chunk, uint64_t index)
{
	return (struct incstack_frame_object *)(void *)(spool + MADE_CHUNKS_AT +
							chunk * MADE_CHUNK_BYTES +
							MADE_OBJECTS_AT) +
	       index;
}

START_TEST(a_whole_spool)
{
	make();
	recover();
	read_file();
	ck_assert_uint_eq(totals()->traces, MADE_RECORDS * MADE_TRACES);
	ck_assert_uint_eq(totals()->gaps, MADE_RECORDS);
	ck_assert_uint_eq(totals()->truncated, MADE_RECORDS);
	ck_assert_uint_eq(totals()->tally.samples, MADE_RECORDS * MADE_TRACES);
	ck_assert_uint_eq(totals()->tally.crosschecked, MADE_RECORDS * MADE_TRACES);
	ck_assert_uint_eq(totals()->tally.mismatches, 0);
	ck_assert_uint_eq(totals()->tally.flags, INCSTACK__TRACEFILE_TALLY_RECOVERED);
	ck_assert_uint_eq(replay.calls, MADE_RECORDS * MADE_TRACES);
	ck_assert_uint_eq(replay.bytes, MADE_RECORDS * MADE_TRACES * 10);
	/* Frames of the three traces: with the one that stands for the gap, 4, 2 and 2. */
	ck_assert_uint_eq(replay.depth_sum, MADE_RECORDS * (4 + 2 + 2));
	close_file();
}
END_TEST

static struct incstack__spool_live *live_of(uint64_t record)
{
	return (struct incstack__spool_live *)(void *)(spool + INCSTACK__SPOOL_HEADER_BYTES +
						       record * MADE_RECORD_BYTES +
						       INCSTACK__SPOOL_LIVE_OFFSET);
}

/* As after a kill between writing a batch and recording that: the newest tally contains the batch,
 * too. */
START_TEST(a_batch_that_is_in_both_counts_once)
{
	make();
	live_of(1)->tally.samples = live_of(1)->tally.crosschecked = 10;
	live_of(1)->newest.samples = live_of(1)->newest.crosschecked = 10 + MADE_TRACES;
	recover();
	memset(spool, 0, sizeof(spool));
	make_spool(spool, &header);
	live_of(1)->tally.samples = live_of(1)->tally.crosschecked = 10;
	live_of(1)->newest.samples = live_of(1)->newest.crosschecked = 10 + MADE_TRACES;
	recover();
	read_file();
	ck_assert_uint_eq(totals()->repeated, MADE_RECORDS);
	ck_assert_uint_eq(totals()->traces, MADE_RECORDS * MADE_TRACES);
	ck_assert_uint_eq(totals()->tally.samples, 10 + MADE_RECORDS * MADE_TRACES);
	ck_assert_uint_eq(totals()->tally.crosschecked, 10 + MADE_RECORDS * MADE_TRACES);
	ck_assert_uint_eq(replay.calls, MADE_RECORDS * MADE_TRACES);
	close_file();
}
END_TEST

/* And as after a kill behind that step: there are no events, and the newest tally has
 * everything. */
START_TEST(a_tally_of_a_batch_that_was_written)
{
	make();
	memset(spool + INCSTACK__SPOOL_HEADER_BYTES + INCSTACK__SPOOL_USED_OFFSET, 0, 8);
	live_of(0)->tally.crosschecked = 10;
	live_of(0)->newest.crosschecked = 13;
	recover();
	read_file();
	ck_assert_uint_eq(totals()->tally.crosschecked, 13 + MADE_TRACES);
	close_file();
}
END_TEST

/* How each walk of the first record ends: word by word it is {5, 4 frames}, {3, 2 frames},
 * {3, 2 frames}. */
static const struct {
	int word;
	uint64_t becomes;
	uint64_t crosschecked;
	uint64_t mismatches;
} walks[] = {
	{0, 0, 0, 0},          /* none, and what follows is no number of frames */
	{1, 1, 3, 1},          /* the pc of the top */
	{2, 1, 3, 1},          /* and its stack pointer */
	{3, 1, 3, 0},          /* a frame in the gap, which the trace does not have */
	{6, 1, 3, 1},          /* the frame behind the gap is not there */
	{8, 1, 3, 1},          /* the outermost frame */
	{9, 0, 1, 0},          /* the same of the second */
	{14, 0, 2, 0},         /* none of the third */
	{9, UINT64_MAX, 1, 0}, /* more frames than fit */
	{14, 2, 3, 1},         /* the third has no callers */
	{14, 4, 3, 1},         /* or one frame more than its trace */
	{14, 1, 3, 1},         /* or no frame at all */
};

START_TEST(what_walks_say)
{
	uint64_t *words = (uint64_t *)(void *)(spool + MADE_CHUNKS_AT + MADE_WALKS_AT);

	make();
	words[walks[_i].word] = walks[_i].becomes;
	recover();
	read_file();
	ck_assert_uint_eq(totals()->tally.crosschecked, MADE_TRACES + walks[_i].crosschecked);
	ck_assert_uint_eq(totals()->tally.mismatches, walks[_i].mismatches);
	ck_assert_uint_eq(totals()->traces, MADE_RECORDS * MADE_TRACES);
	close_file();
}
END_TEST

START_TEST(a_trace_without_a_walk)
{
	uint64_t *words = (uint64_t *)(void *)(spool + MADE_CHUNKS_AT + MADE_WALKS_AT);

	make();
	words[9] = 0;
	memmove(words + 10, words + 14, 5 * sizeof(*words));
	recover();
	read_file();
	ck_assert_uint_eq(totals()->tally.crosschecked, 2 * MADE_TRACES - 1);
	ck_assert_uint_eq(totals()->tally.mismatches, 0);
	close_file();
}
END_TEST

START_TEST(lies_about_walks)
{
	make();
	live_of(0)->walks = 8;
	live_of(1)->walk_bytes = UINT64_MAX;
	recover();
	read_file();
	ck_assert_uint_eq(totals()->tally.crosschecked, 0);
	close_file();
	make();
	live_of(0)->walk_bytes = 8 * 9;
	live_of(1)->walk_count = 2;
	recover();
	read_file();
	ck_assert_uint_eq(totals()->tally.crosschecked, 1 + 2);
	ck_assert_uint_eq(totals()->tally.mismatches, 0);
	close_file();
}
END_TEST

START_TEST(a_block_that_was_cut_off_is_left_out)
{
	const uint64_t start = INCSTACK__TRACEFILE_START;
	struct incstack__tracefile_tally tally = {0};

	make();
	file_bytes += (size_t)incstack__tracefile_tally(file + file_bytes, 256, 1, &tally);
	ck_assert_uint_eq(incstack__tracefile_end(file, file_bytes), file_bytes);
	ck_assert_uint_eq(incstack__tracefile_end(file, file_bytes - 1), start);
	ck_assert_uint_eq(incstack__tracefile_end(file, start + 3), start);
	ck_assert_uint_eq(incstack__tracefile_end(file, start), start);
	ck_assert_uint_eq(incstack__tracefile_end(file, 100), 100);
}
END_TEST

/* What each false value leads to: the number of traces, and of frames without callers. */
static void expect(uint64_t traces, uint64_t truncated)
{
	recover();
	read_file();
	ck_assert_uint_eq(totals()->traces, traces);
	ck_assert_uint_eq(totals()->truncated, truncated);
	close_file();
}

START_TEST(chains_end)
{
	const uint64_t all = MADE_RECORDS * MADE_TRACES;

	make(); /* a ring of three */
	object(0, 2)->parent = made_pointer(MADE_CHUNKS_AT + MADE_OBJECTS_AT);
	expect(all, 3);
	make(); /* of one */
	object(0, 3)->parent = made_pointer(MADE_CHUNKS_AT + MADE_OBJECTS_AT + 3 * 32);
	expect(all, 3);
	make(); /* nowhere */
	object(1, 1)->parent = made_pointer(MADE_BYTES);
	expect(all, 3);
	make(); /* between two objects */
	object(1, 1)->parent = made_pointer(MADE_CHUNKS_AT + MADE_OBJECTS_AT + 8);
	expect(all, 3);
	make(); /* being worked on */
	object(1, 3)->parent = NULL;
	expect(all, 3);
	make(); /* into the events of a record, whose words are no frame of a base */
	object(1, 3)->parent = made_pointer(INCSTACK__SPOOL_HEADER_BYTES);
	expect(all, 3);
}
END_TEST

START_TEST(lies_about_records)
{
	const uint64_t first = INCSTACK__SPOOL_HEADER_BYTES;
	unsigned char *live = spool + first + INCSTACK__SPOOL_LIVE_OFFSET;
	uint64_t word = UINT64_MAX;

	make(); /* more events than fit */
	memcpy(spool + first + INCSTACK__SPOOL_USED_OFFSET, &word, sizeof(word));
	expect(MADE_TRACES, 1);
	make(); /* no traces: the events stay */
	memcpy(live + offsetof(struct incstack__spool_live, tree), &word, sizeof(word));
	expect(2 * MADE_TRACES, 1 + MADE_TRACES);
	make(); /* the list goes round: found twice, and counted once */
	word = first + MADE_RECORD_BYTES;
	memcpy(live + offsetof(struct incstack__spool_live, next), &word, sizeof(word));
	expect(2 * MADE_TRACES, 2);
	make(); /* it leads nowhere */
	word = MADE_BYTES - 8;
	memcpy(live + MADE_RECORD_BYTES + offsetof(struct incstack__spool_live, next), &word,
	       sizeof(word));
	expect(MADE_TRACES, 1);
	make(); /* not in use */
	memset(live, 0, sizeof(uint64_t));
	expect(MADE_TRACES, 1);
}
END_TEST

/* As for a deep stack: the events of the first record lie in the upper half of the second's. */
START_TEST(events_may_lie_elsewhere)
{
	const uint64_t from = INCSTACK__SPOOL_HEADER_BYTES + INCSTACK__SPOOL_RECORD_BYTES;
	const uint64_t to = from + MADE_RECORD_BYTES + INCSTACK__SPOOL_EVENT_BYTES / 2;
	unsigned char *live = spool + INCSTACK__SPOOL_HEADER_BYTES + INCSTACK__SPOOL_LIVE_OFFSET;
	uint64_t place[2] = {MADE_ADDRESS + to, 1024}; /* events, event_bytes */

	make();
	memcpy(spool + to, spool + from, 1024);
	memset(spool + from, 0, 1024);
	memcpy(live + offsetof(struct incstack__spool_live, events), place, sizeof(place));
	expect(2 * MADE_TRACES, 2);
	make(); /* less room than events */
	place[1] = 8;
	memcpy(live + offsetof(struct incstack__spool_live, events), place, sizeof(place));
	expect(MADE_TRACES, 1);
	make(); /* more room than there is memory */
	place[1] = MADE_BYTES;
	memcpy(live + offsetof(struct incstack__spool_live, events), place, sizeof(place));
	expect(MADE_TRACES, 1);
	make(); /* nowhere */
	place[0] = 8;
	memcpy(live + offsetof(struct incstack__spool_live, events), place, sizeof(place));
	expect(MADE_TRACES, 1);
}
END_TEST

/* Two records name the events of one place, which is more than half of the spool. */
START_TEST(events_are_of_one_record)
{
	enum { PLACE = 2 * MADE_BYTES, ALL = MADE_BYTES + PLACE };
	unsigned char *large = aligned_alloc(64, ALL), *blocks;
	struct incstack__spool_header *head = (void *)large;
	const uint64_t place[2] = {MADE_ADDRESS + MADE_BYTES, PLACE};
	struct incstack__tracefile_log log;
	size_t once = 0, both = 0;

	make();
	ck_assert_ptr_nonnull(large);
	memcpy(large, spool, MADE_BYTES);
	head->segment[0].bytes = ALL;
	incstack__tracefile_log_init(&log, large + MADE_BYTES, PLACE);
	while (log.size - log.used >= INCSTACK__TRACEFILE_WIDE_BYTES)
		incstack__tracefile_put_alloc(&log, log.used, 0x5000 + log.used, 10,
					      INCSTACK__TRACEFILE_NO_TRACE);
	for (uint64_t i = MADE_RECORDS; i-- > 0;) {
		unsigned char *record =
			large + INCSTACK__SPOOL_HEADER_BYTES + i * MADE_RECORD_BYTES;
		const uint64_t used = log.used;

		memcpy(record + INCSTACK__SPOOL_LIVE_OFFSET +
			       offsetof(struct incstack__spool_live, events),
		       place, sizeof(place));
		memcpy(record + INCSTACK__SPOOL_USED_OFFSET, &used, sizeof(used));
		ck_assert_int_eq(
			incstack__spool_recover(large, ALL, &header, &blocks, i ? &once : &both),
			0);
		free(blocks);
	}
	ck_assert_uint_gt(once, log.used);
	ck_assert_uint_lt(both, 2 * log.used);
	free(large);
}
END_TEST

START_TEST(the_spool_of_another_file)
{
	unsigned char *blocks;
	size_t bytes;

	make();
	header.start_ns++;
	ck_assert_int_eq(incstack__spool_recover(spool, sizeof(spool), &header, &blocks, &bytes),
			 INCSTACK_EINVAL);
	header.start_ns--;
	ck_assert_int_eq(incstack__spool_recover(spool, 100, &header, &blocks, &bytes),
			 INCSTACK_EINVAL);
	ck_assert_ptr_null(incstack__spool_header(spool + 8, sizeof(spool) - 8, &header));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spool reader");
	TCase *tests = tcase_create("spool reader");

	tcase_add_test(tests, a_whole_spool);
	tcase_add_test(tests, a_batch_that_is_in_both_counts_once);
	tcase_add_test(tests, a_block_that_was_cut_off_is_left_out);
	tcase_add_test(tests, a_tally_of_a_batch_that_was_written);
	tcase_add_loop_test(tests, what_walks_say, 0, sizeof(walks) / sizeof(walks[0]));
	tcase_add_test(tests, a_trace_without_a_walk);
	tcase_add_test(tests, lies_about_walks);
	tcase_add_test(tests, chains_end);
	tcase_add_test(tests, lies_about_records);
	tcase_add_test(tests, events_may_lie_elsewhere);
	tcase_add_test(tests, events_are_of_one_record);
	tcase_add_test(tests, the_spool_of_another_file);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
