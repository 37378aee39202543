/* SPDX-License-Identifier: MIT
 *
 * Tests that the reader of trace files notices any damage, and that no damage harms it.
 */
#include <stdlib.h>

#include "tracefile/replay.h"
#include "run_suite.h"
#include "tracefile_made.h"

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
		  totals->memory_peak != 0 || totals->memory_anonymous != 0 ||
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

/* Adds a batch with these objects to a file, and returns what is wrong with it. */
static const char *problem_of(struct incstack__tracefile_batch batch, const void *payload)
{
	struct incstack__tracefile_block block = {.magic = INCSTACK__TRACEFILE_BLOCK_MAGIC,
						  .type = INCSTACK__TRACEFILE_BATCH,
						  .length = sizeof(batch) + batch.object_bytes};
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_problem problem;
	struct incstack__tracefile_event event;

	start_file();
	memcpy(file + file_bytes + sizeof(block), &batch, sizeof(batch));
	memcpy(file + file_bytes + sizeof(block) + sizeof(batch), payload, batch.object_bytes);
	block.checksum = incstack__tracefile_block_sum(block, file + file_bytes + sizeof(block));
	memcpy(file + file_bytes, &block, sizeof(block));
	file_bytes += sizeof(block) + block.length;
	ck_assert_int_eq(incstack__tracefile_open(file, file_bytes, &reader, &problem), 0);
	ck_assert_int_eq(incstack__tracefile_next(reader, &event), 0);
	problem = incstack__tracefile_reader_problem(reader);
	if (problem.what)
		ck_assert_uint_eq(problem.offset, INCSTACK__TRACEFILE_START);
	incstack__tracefile_close(reader);
	return problem.what;
}

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

	ck_assert_pstr_eq(problem_of(batch, payload), "the parent of a frame object is malformed");
}
END_TEST

/* A frame of a base, and a trace that says it equals one that many objects back. */
START_TEST(a_repeated_trace_is_checked)
{
	enum { REPEATED = 2 << INCSTACK__TRACEFILE_LENGTH_SHIFT | INCSTACK__TRACEFILE_REPEATED };
	const char *malformed = "a repeated trace is malformed";
	unsigned char payload[] = {1 << INCSTACK__TRACEFILE_LENGTH_SHIFT |
					   INCSTACK__TRACEFILE_PARENT_BASE,
				   2, REPEATED, 1, 0};
	struct incstack__tracefile_batch batch = {1, 1, 2, sizeof(payload), 0, 0};

	ck_assert_ptr_null(problem_of(batch, payload));
	payload[3] = 2; /* before the first object */
	ck_assert_pstr_eq(problem_of(batch, payload), malformed);
	payload[3] = 0; /* an object that does not exist yet */
	ck_assert_pstr_eq(problem_of(batch, payload), malformed);
	payload[3] = 1;
	payload[2] += 1 << INCSTACK__TRACEFILE_LENGTH_SHIFT; /* three bytes */
	ck_assert_pstr_eq(problem_of(batch, payload), malformed);
	payload[2] = REPEATED +
		     (2 << INCSTACK__TRACEFILE_LENGTH_SHIFT); /* four, of which two are there */
	ck_assert_pstr_eq(problem_of(batch, payload), malformed);
	payload[2] = REPEATED;
	payload[0] -= INCSTACK__TRACEFILE_PARENT_BASE; /* in the middle of a run */
	ck_assert_pstr_eq(problem_of(batch, payload), "the last frame object has no parent");
	batch.objects = 2;
	ck_assert_pstr_eq(problem_of(batch, payload), "a frame object is malformed");
	payload[0] += INCSTACK__TRACEFILE_PARENT_BASE;
	ck_assert_pstr_eq(problem_of(batch, payload),
			  "there are fewer frame objects than the batch says");
	batch.objects = 0;
	ck_assert_pstr_eq(problem_of(batch, payload),
			  "there are more frame objects than the batch says");
	batch.objects = batch.traces = 1;
	ck_assert_pstr_eq(problem_of(batch, payload),
			  "there are more runs of frame objects than traces");
	batch.traces = 3;
	ck_assert_pstr_eq(problem_of(batch, payload), "a trace has no frame object");
	batch.traces = sizeof(payload) + 1;
	ck_assert_pstr_eq(problem_of(batch, payload), "the parts of a batch do not add up");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("damaged tracefile");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, every_flipped_byte_is_noticed);
	tcase_add_test(tests, every_truncation_is_noticed);
	tcase_add_test(tests, lies_with_right_checksums_do_no_harm);
	tcase_add_test(tests, a_block_cut_off_is_counted);
	tcase_add_test(tests, a_ring_of_objects_is_refused);
	tcase_add_test(tests, a_repeated_trace_is_checked);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
