/* SPDX-License-Identifier: MIT
 *
 * Tests the memory of the recorder that outlives the process: what the handlers of ticks get of it.
 */
#include "recorder/system/small_file.c"
#include "recorder/output/spool.c"
#include "recorder/output/spool_file.c"
#include "recorder/log/log_memory.c"

#include "run_suite.h"
#include "spooled.h"

/* The handler of a tick gets what the file has, makes it no larger, and does not wait for the lock. */
START_TEST(in_a_handler)
{
	off_t size;
	void *chunk, *other;

	incstack__spool_open(trace, 1);
	incstack__spool_ahead();
	ck_assert_uint_ge(spool_file.left, 2 * LEAST_STEP);
	size = size_of_file();
	incstack__record_local.handling = 1;
	is_locked_elsewhere = true;
	ck_assert_ptr_null(incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES));
	is_locked_elsewhere = false;
	chunk = incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES);
	ck_assert(in_spool(chunk));
	other = incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES);
	is_locked_elsewhere = true;
	incstack__spool_chunk_release(NULL, other, INCSTACK__CHUNK_BYTES);
	incstack__spool_chunk_release(NULL, chunk, INCSTACK__CHUNK_BYTES);
	is_locked_elsewhere = false;
	ck_assert_ptr_eq(incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES), chunk);
	ck_assert_ptr_eq(incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES), other);
	while ((other = incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES)) != NULL)
		ck_assert_int_eq(size_of_file(), size);
	ck_assert_uint_lt(spool_file.left, INCSTACK__CHUNK_BYTES);
	ck_assert_uint_eq(notes, 0);
	incstack__record_local.handling = 0;
	ck_assert_ptr_nonnull(incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES));
	ck_assert_int_gt(size_of_file(), size);
}
END_TEST

/* Each record in use adds to the memory that is set aside for handlers, up to a limit. */
START_TEST(ahead_for_each_thread)
{
	struct incstack__record *records[8];

	incstack__spool_open(trace, 1);
	for (int i = 0; i < 8; i++)
		ck_assert_ptr_nonnull(records[i] = incstack__spool_record());
	incstack__spool_ahead();
	ck_assert_uint_ge(spool_file.left, (2u << 20) + 8 * 3 * INCSTACK__CHUNK_BYTES);
	for (int i = 0; i < 8; i++)
		incstack__spool_record_release(records[i]);
	ck_assert_uint_eq(spool.users, 0);
	spool.users = 1 << 20;
	incstack__spool_ahead();
	ck_assert_uint_ge(spool_file.left, 64 << 20);
	ck_assert_uint_lt(spool_file.left, 80 << 20);
	spool.users = 0;
}
END_TEST

/* Zeros that are written ahead do not overwrite what a handler has got. */
START_TEST(kept_after_a_handler)
{
	enum { CHUNKS = 8, LATER = 12, CONTENT = 0x55 };
	unsigned char *chunks[CHUNKS];

	incstack__spool_open(trace, 1);
	incstack__spool_ahead();
	incstack__record_local.handling = 1;
	for (int i = 0; i < CHUNKS; i++) {
		chunks[i] = incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES);
		memset(chunks[i], CONTENT, INCSTACK__CHUNK_BYTES);
	}
	incstack__record_local.handling = 0;
	for (int i = 0; i < LATER; i++)
		ck_assert_ptr_nonnull(incstack__spool_chunk(NULL, INCSTACK__CHUNK_BYTES));
	for (int i = 0; i < CHUNKS; i++)
		for (size_t at = 0; at < INCSTACK__CHUNK_BYTES; at++)
			ck_assert_int_eq(chunks[i][at], CONTENT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spool in handlers");
	TCase *handlers = tcase_create("handlers");

	tcase_add_checked_fixture(handlers, make_folder, remove_folder);
	tcase_add_test(handlers, in_a_handler);
	tcase_add_test(handlers, ahead_for_each_thread);
	tcase_add_test(handlers, kept_after_a_handler);
	suite_add_tcase(suite, handlers);
	return run_suite(suite);
}
