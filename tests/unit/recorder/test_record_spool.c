/* SPDX-License-Identifier: MIT
 *
 * Tests the memory of the recorder that outlives the process: without a file, with a file that
 * cannot grow, is gone or was replaced, and that each piece is used again.
 */
#include <check.h>
#include <stdlib.h>

#include "refused.h"

#include "recorder/system/small_file.c"
#include "recorder/output/spool.c"
#include "recorder/output/spool_file.c"
#include "recorder/log/log_memory.c"

#include "run_suite.h"
#include "spooled.h"

/* ---- the file --------------------------------------------------------------------------- */

static int next_descriptor(void)
{
	const int fd = dup(STDERR_FILENO);

	close(fd);
	return fd;
}

START_TEST(begun_and_removed)
{
	const struct incstack__spool_header *header;
	const int next = next_descriptor();

	incstack__spool_open(trace, 77);
	ck_assert_int_eq(next_descriptor(), next); /* the program's descriptors are its own */
	header = spool_file.header;
	ck_assert_ptr_nonnull(header);
	ck_assert_int_eq(size_of_file(), LEAST_STEP);
	ck_assert_uint_eq(header->magic, INCSTACK__SPOOL_MAGIC);
	ck_assert_uint_eq(header->start_ns, 77);
	ck_assert_uint_eq(header->pid, (uint64_t)getpid());
	ck_assert_uint_gt(header->process_start, 0);
	ck_assert_uint_eq(notes, 0);
	ck_assert(in_spool(incstack__spool_record()));
	incstack__spool_remove();
	ck_assert_int_eq(size_of_file(), -1);
}
END_TEST

/* A file that another process has put there, or has taken away, is left alone. */
START_TEST(only_its_own_is_removed)
{
	char other[96];

	incstack__spool_open(trace, 1);
	snprintf(other, sizeof(other), "%s.other", path);
	ck_assert_int_eq(rename(path, other), 0);
	incstack__spool_remove();
	close(open(path, O_CREAT | O_WRONLY, 0600));
	incstack__spool_remove();
	ck_assert_int_eq(size_of_file(), 0);
	ck_assert_int_eq(rename(other, path), 0);
	spool_file.device++;
	incstack__spool_remove();
	spool_file.device--;
	ck_assert_int_ne(size_of_file(), -1);
	incstack__spool_remove();
	ck_assert_int_eq(size_of_file(), -1);
}
END_TEST

static const struct step {
	const char *call;
	unsigned number;
	bool begun; /* the file is still used */
} steps[] = {
	{"open", 0, false}, {"fstat", 0, false},    {"fallocate", 0, false},
	{"mmap", 0, false}, {"mmap", 1, false},     {"open", 1, true},
	{"read", 0, true},  {"getrlimit", 0, true}, {"fstat", 1, true},
};

/* If a step is refused at the start, either recording goes on in memory that a kill loses, which is
 * noted, or the step does not matter. */
START_TEST(refused_at_the_start)
{
	const struct step *step = &steps[_i];
	struct incstack__record *record;

	refuse(step->call, step->number, 1, EACCES);
	incstack__spool_open(trace, 1);
	ck_assert_uint_gt(refusal.calls, step->number);
	refuse_nothing();
	ck_assert_int_eq(spool_file.header != NULL, step->begun);
	ck_assert_uint_eq(notes, !step->begun);
	record = incstack__spool_record();
	ck_assert_ptr_nonnull(record);
	ck_assert_int_eq(in_spool(record), step->begun);
	incstack__spool_chunk_release(NULL, incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES),
				      INCSTACK__CHUNK_BYTES);
	ck_assert_uint_eq(mapped, step->begun ? 0 : 2);
	if (!step->begun)
		ck_assert_uint_eq(unmapped, step->number == 1);
}
END_TEST

/* Without a mark that fork wipes there is no file, because a child would write into it. */
START_TEST(no_file_without_a_mark)
{
	incstack__recording.wiped = 0;
	incstack__spool_open(trace, 1);
	ck_assert_ptr_null(spool_file.header);
	ck_assert_int_eq(size_of_file(), -1);
	incstack__spool_remove();
	incstack__spool_leave();
	ck_assert_uint_eq(unmapped, 0);
}
END_TEST

/* ---- when it grows ------------------------------------------------------------------------ */

static const struct {
	const char *call;
	int error;
	unsigned number;
} growths[] = {{"open", ENOENT, 0}, {"fstat", EIO, 0},   {"fallocate", ENOSPC, 0},
	       {"mmap", ENOMEM, 0}, {"mmap", ENOMEM, 1}, {NULL, 0, 0}};
enum { GROWTHS = sizeof(growths) / sizeof(growths[0]), OTHER_FILES = 3 };

static void use_up(void)
{
	ck_assert_ptr_nonnull(cut(spool_file.left));
	ck_assert_uint_eq(spool_file.left, 0);
}

/* The lowest descriptor that is free. The program finds the same one before and after. */
static int free_descriptor(void)
{
	const int fd = dup(0);

	ck_assert_int_ge(fd, 0);
	close(fd);
	return fd;
}

/* A piece for which the file cannot grow is private; the next one is in the file again. */
START_TEST(refused_while_it_grows)
{
	void *piece;
	int fd;

	incstack__spool_open(trace, 1);
	use_up();
	fd = free_descriptor();
	if (growths[_i].call != NULL)
		refuse(growths[_i].call, growths[_i].number, 1, growths[_i].error);
	else
		spool_file.header->segments = INCSTACK__SPOOL_SEGMENTS;
	piece = incstack__spool_room(INCSTACK__SPOOL_ROOM_LEAST);
	refuse_nothing();
	ck_assert_ptr_nonnull(piece);
	ck_assert(!in_spool(piece));
	ck_assert_uint_eq(notes, 1);
	ck_assert_uint_eq(mapped, 1);
	if (growths[_i].call == NULL)
		spool_file.header->segments = 1;
	piece = incstack__spool_room(INCSTACK__SPOOL_ROOM_LEAST);
	ck_assert(in_spool(piece));
	ck_assert_uint_eq(spool_file.header->segments, 2);
	ck_assert_int_eq(size_of_file(), 2 * LEAST_STEP);
	ck_assert_uint_eq(notes, 1);
	ck_assert_int_eq(free_descriptor(), fd);
}
END_TEST

/* The file at that path is no longer ours. */
START_TEST(another_file)
{
	incstack__spool_open(trace, 1);
	use_up();
	const int fd = free_descriptor();
	if (_i == 0)
		spool_file.device++;
	else if (_i == 1)
		spool_file.inode++;
	else
		ck_assert_int_eq(unlink(path), 0);
	ck_assert(!in_spool(incstack__spool_room(INCSTACK__SPOOL_ROOM_LEAST)));
	ck_assert_uint_eq(spool_file.header->segments, 1);
	ck_assert_uint_eq(notes, 1);
	ck_assert_int_eq(free_descriptor(), fd);
}
END_TEST

/* The limit on file sizes is kept to the byte, because a larger file would cause a signal. */
START_TEST(limit_of_the_file)
{
	struct rlimit limit = {2 * LEAST_STEP - 1, RLIM_INFINITY};

	incstack__spool_open(trace, 1);
	use_up();
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert(!in_spool(incstack__spool_room(INCSTACK__SPOOL_ROOM_LEAST)));
	limit.rlim_cur++;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert(in_spool(incstack__spool_room(INCSTACK__SPOOL_ROOM_LEAST)));
	ck_assert_int_eq(size_of_file(), 2 * LEAST_STEP);
}
END_TEST

/* A piece that is larger than a step. */
START_TEST(large_pieces)
{
	const size_t bytes = INCSTACK__SPOOL_WALK_BYTES_MOST;
	unsigned char *piece;

	incstack__spool_open(trace, 1);
	piece = incstack__spool_room(bytes);
	ck_assert(in_spool(piece));
	memset(piece, 1, bytes);
	incstack__spool_room_release(piece, bytes);
	incstack__spool_room_release(NULL, bytes);
	ck_assert_ptr_eq(incstack__spool_room(bytes), piece);
	ck_assert_uint_eq(notes, 0);
	incstack__spool_leave();
	ck_assert_uint_eq(unmapped, 2);
	ck_assert_ptr_null(spool_file.header);
}
END_TEST

/* ---- pages that are there before they are touched ----------------------------------------- */

static bool is_there(const void *memory, size_t bytes)
{
	const uintptr_t first = (uintptr_t)memory & ~(uintptr_t)4095;
	const size_t pages = ((uintptr_t)memory + bytes - first + 4095) / 4096;
	unsigned char there[LEAST_STEP / 4096];

	ck_assert_uint_le(pages, sizeof(there));
	ck_assert_int_eq(mincore((void *)first, pages * 4096, there), 0);
	for (size_t i = 0; i < pages; i++)
		if (!(there[i] & 1))
			return false;
	return true;
}

static bool holds(const unsigned char *memory, size_t bytes, unsigned char value)
{
	for (size_t i = 0; i < bytes; i++)
		if (memory[i] != value)
			return false;
	return true;
}

/* New pieces hold zeros and are in memory already. Those from before keep what they hold. */
START_TEST(pages_are_there)
{
	enum { PIECES = 40 };
	unsigned char *piece[PIECES];

	incstack__spool_open(trace, 1);
	ck_assert(is_there(spool_file.header, FILLED_FIRST));
	ck_assert_uint_eq(spool_file.header->magic, INCSTACK__SPOOL_MAGIC);
	for (int i = 0; i < PIECES; i++) {
		piece[i] = incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES);
		ck_assert(in_spool(piece[i]));
		ck_assert(is_there(piece[i], INCSTACK__CHUNK_BYTES));
		ck_assert(holds(piece[i], INCSTACK__CHUNK_BYTES, 0));
		memset(piece[i], i + 1, INCSTACK__CHUNK_BYTES);
	}
	for (int i = 0; i < PIECES; i++)
		ck_assert(holds(piece[i], INCSTACK__CHUNK_BYTES, (unsigned char)(i + 1)));
	ck_assert_uint_gt(spool_file.header->segments, 1);
	ck_assert_uint_eq(spool_file.header->magic, INCSTACK__SPOOL_MAGIC);
	ck_assert_uint_eq(notes, 0);
}
END_TEST

static const struct {
	const char *call;
	int error;
} fills[] = {{"pwritev", ENOSPC}, {"open", ENOENT}, {"fstat", EIO}, {NULL, 0}};
enum { FILLS = sizeof(fills) / sizeof(fills[0]) };

/* If the file cannot be written, or must not be written any more, its pages are made when they are
 * touched. */
START_TEST(pages_come_later)
{
	struct rlimit limit = {FILLED_FIRST + 1, RLIM_INFINITY};
	unsigned char *piece;
	int fd;

	incstack__spool_open(trace, 1);
	ck_assert_ptr_nonnull(cut((size_t)(spool_file.filled - spool_file.next)));
	fd = free_descriptor();
	if (fills[_i].call != NULL)
		refuse(fills[_i].call, 0, 1, fills[_i].error);
	else
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	piece = incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES);
	ck_assert(refusal.call == NULL || refusal.calls > 0);
	refuse_nothing();
	ck_assert(in_spool(piece));
	ck_assert_int_eq(free_descriptor(), fd);
	memset(piece, 1, INCSTACK__CHUNK_BYTES);
	while (spool_file.left >= INCSTACK__CHUNK_BYTES)
		ck_assert(in_spool(incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES)));
	ck_assert(holds(piece, INCSTACK__CHUNK_BYTES, 1));
	ck_assert_uint_eq(notes, 0);
}
END_TEST

/* ---- records ------------------------------------------------------------------------------ */

/* A record is listed once, however often it is used, and begins empty. Chunks have one size. */
START_TEST(records_are_used_again)
{
	struct incstack__record *record, *other;

	incstack__spool_open(trace, 1);
	record = incstack__spool_record();
	ck_assert_uint_eq(spool_file.header->records, incstack__spool_file_offset(record));
	ck_assert_uint_eq(record->live.next, 0);
	ck_assert_uint_eq(record->log.size, INCSTACK__SPOOL_EVENT_BYTES);
	record->tid = 5;
	record->traces = 6;
	record->log.used = 8;
	record->live.magic = INCSTACK__SPOOL_RECORD_MAGIC;
	record->live.thread = 7;
	incstack__spool_log_fit(record, INCSTACK__SPOOL_EVENT_BYTES_MOST);
	ck_assert_uint_eq(record->live.event_bytes, INCSTACK__SPOOL_EVENT_BYTES_MOST);
	ck_assert(in_spool((void *)record->live.events));
	incstack__spool_record_release(record);
	ck_assert_uint_eq(record->live.events, 0);
	ck_assert_ptr_eq(incstack__spool_record(), record);
	ck_assert_uint_eq(spool_file.header->records, incstack__spool_file_offset(record));
	ck_assert_uint_eq(record->live.next, 0);
	ck_assert_uint_eq(record->live.magic, 0);
	ck_assert_uint_eq(record->live.thread, 0);
	ck_assert_int_eq(record->tid, 0);
	ck_assert_uint_eq(record->traces, 0);
	ck_assert_uint_eq(record->log.used, 0);
	other = incstack__spool_record();
	ck_assert_uint_eq(other->live.next, incstack__spool_file_offset(record));
	incstack__spool_record_release(other);
	ck_assert_ptr_eq(incstack__spool_record(), other);
	ck_assert_uint_eq(other->live.next, incstack__spool_file_offset(record));
	ck_assert_uint_eq(spool_file.header->records, incstack__spool_file_offset(other));
	ck_assert_ptr_null(incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES - 1));
	ck_assert_ptr_null(incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES + 1));
}
END_TEST

/* What exists already is unchanged. */
START_TEST(no_memory_at_all)
{
	struct incstack__record *record;

	incstack__recording.wiped = 0;
	incstack__spool_open(trace, 1);
	record = incstack__spool_record();
	incstack__spool_log_fit(record, INCSTACK__SPOOL_EVENT_BYTES_MOST / 2);
	no_memory = true;
	ck_assert_ptr_null(incstack__spool_record());
	incstack__spool_log_fit(record, INCSTACK__SPOOL_EVENT_BYTES_MOST);
	ck_assert_uint_eq(record->log.size, INCSTACK__SPOOL_EVENT_BYTES_MOST / 2);
	ck_assert_uint_eq(record->live.events, (uintptr_t)record->log.data);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spool of the recorder");
	TCase *files = tcase_create("files");

	tcase_add_checked_fixture(files, make_folder, remove_folder);
	tcase_add_test(files, begun_and_removed);
	tcase_add_test(files, only_its_own_is_removed);
	tcase_add_loop_test(files, refused_at_the_start, 0, sizeof(steps) / sizeof(steps[0]));
	tcase_add_test(files, no_file_without_a_mark);
	tcase_add_loop_test(files, refused_while_it_grows, 0, GROWTHS);
	tcase_add_loop_test(files, another_file, 0, OTHER_FILES);
	tcase_add_test(files, limit_of_the_file);
	tcase_add_test(files, large_pieces);
	tcase_add_test(files, pages_are_there);
	tcase_add_loop_test(files, pages_come_later, 0, FILLS);
	tcase_add_test(files, records_are_used_again);
	tcase_add_test(files, no_memory_at_all);
	suite_add_tcase(suite, files);
	return run_suite(suite);
}
