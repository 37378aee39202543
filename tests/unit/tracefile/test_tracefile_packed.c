/* SPDX-License-Identifier: MIT
 *
 * Tests packed trace files: each becomes the same bytes again; and no cut, no damage and no lie harms the reader.
 */
#include <stdlib.h>

#include "tracefile/packed.h"
#include "tracefile/packed_format.h"
#include "tracefile/replay.h"
#include "run_suite.h"
#include "tracefile_made.h"

static unsigned char *packed;
static size_t packed_bytes;

static int pack(const unsigned char *data, size_t size)
{
	FILE *out;
	int error;

	free(packed);
	out = open_memstream((char **)&packed, &packed_bytes);
	ck_assert_ptr_nonnull(out);
	error = incstack__tracefile_pack(data, size, out);
	ck_assert_int_eq(fclose(out), 0);
	return error;
}

/* Fails unless the file becomes the same bytes again. */
static void goes_round(const unsigned char *data, size_t size)
{
	struct incstack__tracefile_unpacked unpacked;

	ck_assert_int_eq(pack(data, size), 0);
	ck_assert_int_eq(incstack__tracefile_unpack(packed, packed_bytes, &unpacked), 0);
	ck_assert_ptr_null(unpacked.what);
	ck_assert_uint_eq(unpacked.cut, 0);
	ck_assert_uint_eq(unpacked.size, size);
	ck_assert_mem_eq(unpacked.data, data, size);
	free(unpacked.owned);
}

/* ---- random streams ------------------------------------------------------------------------ */

/* Live pointers, of which some are freed: the newest, the oldest or any. */
struct heap {
	uint64_t live[256];
	unsigned count;
	uint64_t seed, stamp, next;
};

static uint64_t any(struct heap *heap, uint64_t below)
{
	return random_next(&heap->seed) % below;
}

static uint64_t take_pointer(struct heap *heap)
{
	const unsigned at = (unsigned)(any(heap, 3) == 0   ? 0
				       : any(heap, 2) == 0 ? heap->count - 1
							   : any(heap, heap->count));
	const uint64_t pointer = heap->live[at];

	memmove(&heap->live[at], &heap->live[at + 1], (--heap->count - at) * sizeof(heap->live[0]));
	return pointer;
}

static uint64_t new_pointer(struct heap *heap)
{
	switch (any(heap, 8)) {
	case 0: /* of no allocator */
		return random_next(&heap->seed) << 20 >> any(heap, 48);
	case 1: /* live, or freed lately */
		return heap->live[any(heap, 256)];
	default:
		heap->next += 16 * (1 + any(heap, 8));
		return heap->next;
	}
}

static void add_event(struct heap *heap, struct incstack__tracefile_log *log, uint64_t *trace)
{
	heap->stamp +=
		any(heap, 50) == 0 ? random_next(&heap->seed) << any(heap, 20) : any(heap, 9);
	if (heap->count == 256 || (heap->count > 0 && any(heap, 2) == 0)) {
		incstack__tracefile_put_free(log, heap->stamp,
					     any(heap, 30) == 0 ? random_next(&heap->seed)
								: take_pointer(heap));
		return;
	}
	heap->live[heap->count] = new_pointer(heap);
	incstack__tracefile_put_alloc(log, heap->stamp, heap->live[heap->count],
				      random_next(&heap->seed) >> any(heap, 31),
				      any(heap, 20) == 0 ? INCSTACK__TRACEFILE_NO_TRACE
							 : (*trace)++ % TRACES);
	heap->count++;
}

static void append_random_batch(struct heap *heap, uint32_t thread)
{
	static struct made made;
	static uint64_t words[1024];
	struct incstack__tracefile_log log = log_in(words, sizeof(words));
	uint64_t trace = 0;

	make_tree(&made, heap->seed);
	for (uint64_t i = any(heap, 300); i > 0; i--)
		add_event(heap, &log, &trace);
	append(put_batch(file + file_bytes, sizeof(file) - file_bytes, &log, thread, 1,
			 &made.tree));
}

static void make_random_file(uint64_t seed, size_t batches)
{
	static struct heap heap;

	heap = (struct heap){.seed = seed, .next = 0x10000};
	start_file();
	append_modules(1);
	for (size_t i = 0; i < batches; i++)
		append_random_batch(&heap, (uint32_t)any(&heap, 3));
	append_end();
}

START_TEST(random_streams_become_the_same_bytes)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		make_random_file(seed, seed % 20);
		goes_round(file, file_bytes);
	}
	make_random_file(7, 240); /* several groups */
	ck_assert_uint_gt(file_bytes, 2 * INCSTACK__PACKED_GROUP_BYTES);
	goes_round(file, file_bytes);
	ck_assert_uint_lt(packed_bytes, file_bytes / 2);
}
END_TEST

/* What no recorder writes is copied. */
START_TEST(damaged_files_become_the_same_bytes)
{
	uint64_t seed = 5;

	make_random_file(1, 20);
	for (size_t i = 0; i < 60; i++) {
		const size_t at = sizeof(struct incstack__tracefile_header) +
				  random_next(&seed) %
					  (file_bytes - sizeof(struct incstack__tracefile_header));

		file[at] ^= (unsigned char)(1 << (i % 8));
		goes_round(file, file_bytes);
		goes_round(file, at > INCSTACK__TRACEFILE_START ? at : INCSTACK__TRACEFILE_START);
	}
}
END_TEST

/* Batches whose checksums are right and whose contents are anything. */
START_TEST(batches_of_anything_become_the_same_bytes)
{
	struct incstack__tracefile_block block = {.magic = INCSTACK__TRACEFILE_BLOCK_MAGIC,
						  .type = INCSTACK__TRACEFILE_BATCH};
	uint64_t seed = 9;

	for (unsigned i = 0; i < 500; i++) {
		struct incstack__tracefile_batch batch = {
			.event_bytes = (uint32_t)(8 * (random_next(&seed) % 12)),
			.object_bytes = (uint32_t)(random_next(&seed) % 12)};
		unsigned char *payload;

		start_file();
		payload = file + file_bytes + sizeof(block);
		block.length = (uint32_t)sizeof(batch) + batch.event_bytes + batch.object_bytes;
		memcpy(payload, &batch, sizeof(batch));
		for (size_t at = sizeof(batch); at < block.length; at++)
			payload[at] =
				(unsigned char)(random_next(&seed) & (i % 2 == 0 ? 0xff : 0x2d));
		block.checksum = incstack__tracefile_block_sum(block, payload);
		memcpy(file + file_bytes, &block, sizeof(block));
		goes_round(file, file_bytes + sizeof(block) + block.length);
	}
}
END_TEST

/* ---- reading -------------------------------------------------------------------------------- */

struct read {
	uint64_t events, sum;
	struct incstack__tracefile_totals totals;
	struct incstack__tracefile_problem problem;
	int error;
};

static struct read read_all(const unsigned char *data, size_t size)
{
	struct incstack__tracefile_reader *reader;
	struct incstack__tracefile_event event;
	struct read read = {0};

	read.error = incstack__tracefile_open(data, size, &reader, &read.problem);
	if (read.error != 0)
		return read;
	while (incstack__tracefile_next(reader, &event) == 1) {
		read.events++;
		read.sum = read.sum * 31 + event.stamp + event.pointer + event.size + event.trace;
	}
	read.totals = *incstack__tracefile_reader_totals(reader);
	read.problem = incstack__tracefile_reader_problem(reader);
	incstack__tracefile_close(reader);
	return read;
}

START_TEST(both_forms_read_alike)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct read raw, read;

		make_random_file(seed, 10);
		ck_assert_int_eq(pack(file, file_bytes), 0);
		raw = read_all(file, file_bytes);
		read = read_all(packed, packed_bytes);
		ck_assert_int_eq(read.error, 0);
		ck_assert_ptr_null(read.problem.what);
		ck_assert_uint_gt(read.events, 0);
		ck_assert_uint_eq(read.events, raw.events);
		ck_assert_uint_eq(read.sum, raw.sum);
		ck_assert_mem_eq(&read.totals, &raw.totals, sizeof(raw.totals));
	}
}
END_TEST

/* A reader gets a copy of the exact size, so that the sanitizer sees any read behind it. */
static struct read read_copy(size_t size)
{
	unsigned char *copy = malloc(size + 1);
	struct read read;

	memcpy(copy, packed, size);
	read = read_all(copy, size);
	free(copy);
	return read;
}

/* Most of the header is alike. */
static bool is_boring(size_t at)
{
	return at > 100 && at < sizeof(struct incstack__tracefile_header) - 10;
}

START_TEST(every_cut_is_noticed)
{
	make_random_file(3, 1);
	ck_assert_int_eq(pack(file, file_bytes), 0);
	for (size_t size = 0; size < packed_bytes; size++) {
		struct read read;

		if (is_boring(size))
			continue;
		read = read_copy(size);

		if (read.error != 0)
			ck_assert_ptr_nonnull(read.problem.what);
		else /* the border between two groups tells nothing */
			ck_assert_msg(read.totals.truncated_bytes > 0 ||
					      !(read.totals.tally.flags &
						INCSTACK__TRACEFILE_TALLY_PROCESS),
				      "cut at %zu", size);
		ck_assert_int_ne(read.error, INCSTACK_ENOMEM);
	}
}
END_TEST

/* The groups before the cut are the beginning of the file. */
START_TEST(what_is_before_a_cut_is_read)
{
	size_t least = 0;

	make_random_file(11, 220);
	ck_assert_int_eq(pack(file, file_bytes), 0);
	for (size_t size = sizeof(struct incstack__tracefile_header); size < packed_bytes;
	     size += packed_bytes / 41) {
		struct incstack__tracefile_unpacked unpacked;

		ck_assert_int_eq(incstack__tracefile_unpack(packed, size, &unpacked), 0);
		ck_assert_ptr_null(unpacked.what);
		ck_assert_uint_ge(unpacked.size, least);
		ck_assert_mem_eq(unpacked.data, file, unpacked.size);
		ck_assert_uint_lt(unpacked.cut, size);
		least = unpacked.size;
		free(unpacked.owned);
	}
	ck_assert_uint_gt(least, file_bytes / 2);
}
END_TEST

START_TEST(every_flipped_byte_of_a_packed_file_is_noticed)
{
	make_random_file(3, 1);
	ck_assert_int_eq(pack(file, file_bytes), 0);
	for (size_t at = 0; at < packed_bytes; at++) {
		struct read read;

		if (is_boring(at))
			continue;
		packed[at] ^= (unsigned char)(1 << (at % 8));
		read = read_copy(packed_bytes);
		ck_assert_msg(read.problem.what != NULL || read.totals.truncated_bytes > 0,
			      "flip at %zu", at);
		packed[at] ^= (unsigned char)(1 << (at % 8));
	}
}
END_TEST

/* ---- lies ------------------------------------------------------------------------------------ */

static void reseal(size_t offset)
{
	struct incstack__packed_group group;

	memcpy(&group, packed + offset, sizeof(group));
	if (group.bytes > packed_bytes - offset - sizeof(group))
		return;
	group.checksum = incstack__packed_sum(group, packed + offset + sizeof(group));
	memcpy(packed + offset, &group, sizeof(group));
}

START_TEST(lies_of_groups_with_right_checksums_do_no_harm)
{
	size_t offset = sizeof(struct incstack__tracefile_header);
	struct incstack__packed_group group;
	size_t noticed = 0;

	make_random_file(4, 1);
	ck_assert_int_eq(pack(file, file_bytes), 0);
	for (; offset < packed_bytes; offset += sizeof(group) + group.bytes) {
		memcpy(&group, packed + offset, sizeof(group));
		for (size_t at = offset; at < offset + sizeof(group) + group.bytes; at++) {
			struct read read;

			packed[at] ^= (unsigned char)(1 << (at * 5 % 8));
			reseal(offset);
			read = read_copy(packed_bytes);
			noticed += read.problem.what != NULL;
			packed[at] ^= (unsigned char)(1 << (at * 5 % 8));
			reseal(offset);
		}
	}
	ck_assert_uint_gt(noticed, 100);
}
END_TEST

/* Gives the second group a head that claims something, and reads the file. */
static const char *reads_with(uint32_t raw, uint32_t columns)
{
	size_t offset = sizeof(struct incstack__tracefile_header);
	struct incstack__packed_group group;

	make_random_file(4, 3);
	ck_assert_int_eq(pack(file, file_bytes), 0);
	memcpy(&group, packed + offset, sizeof(group));
	offset += sizeof(group) + group.bytes;
	memcpy(&group, packed + offset, sizeof(group));
	group.raw = raw;
	group.columns = columns;
	memcpy(packed + offset, &group, sizeof(group));
	reseal(offset);
	return read_all(packed, packed_bytes).problem.what;
}

START_TEST(claims_are_bounded)
{
	ck_assert_str_eq(reads_with(1u << 30, 1000),
			 "it claims to have been larger than it can have been");
	ck_assert_str_eq(reads_with(1000, 1u << 30), "a group claims too many columns");
	ck_assert_str_eq(reads_with(100000, 10), "a group cannot be unpacked");
}
END_TEST

/* A file that no reader would believe is not made. */
START_TEST(what_would_become_too_large_is_not_packed)
{
	const size_t size = 64u << 20;
	unsigned char *zeros = calloc(1, size);

	ck_assert_ptr_nonnull(zeros);
	start_file();
	memcpy(zeros, file, sizeof(struct incstack__tracefile_header));
	ck_assert_int_eq(pack(zeros, size), INCSTACK_EINVAL);
	free(zeros);
}
END_TEST

START_TEST(only_trace_files_are_packed)
{
	make_random_file(1, 1);
	ck_assert_int_eq(pack(file, INCSTACK__TRACEFILE_START - 1), INCSTACK_EINVAL);
	ck_assert_int_eq(pack(file, file_bytes), 0);
	memcpy(file, packed, packed_bytes);
	ck_assert_int_eq(pack(file, file_bytes), INCSTACK_EINVAL);
	start_file();
	file[100] ^= 1; /* its checksum is wrong */
	ck_assert_int_eq(pack(file, file_bytes), INCSTACK_EINVAL);
}
END_TEST

START_TEST(a_full_disk_is_told)
{
	FILE *full = fopen("/dev/full", "w");

	if (full == NULL)
		return;
	make_random_file(1, 5);
	ck_assert_int_eq(incstack__tracefile_pack(file, file_bytes, full), INCSTACK_EIO);
	fclose(full);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("packed tracefile");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, random_streams_become_the_same_bytes);
	tcase_add_test(tests, damaged_files_become_the_same_bytes);
	tcase_add_test(tests, batches_of_anything_become_the_same_bytes);
	tcase_add_test(tests, both_forms_read_alike);
	tcase_add_test(tests, every_cut_is_noticed);
	tcase_add_test(tests, what_is_before_a_cut_is_read);
	tcase_add_test(tests, every_flipped_byte_of_a_packed_file_is_noticed);
	tcase_add_test(tests, lies_of_groups_with_right_checksums_do_no_harm);
	tcase_add_test(tests, claims_are_bounded);
	tcase_add_test(tests, what_would_become_too_large_is_not_packed);
	tcase_add_test(tests, only_trace_files_are_packed);
	tcase_add_test(tests, a_full_disk_is_told);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
