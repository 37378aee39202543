/* SPDX-License-Identifier: MIT
 *
 * Tests blocks of operator new, whose allocator may or may not have called malloc. A block that
 * the thread's log already has, in any kind of event, is not recorded again; every other block
 * is.
 */
#include <check.h>

#include "tracefile/write.h"
#include "recorder/heap/new.c"

#include "run_suite.h"

struct incstack__recording incstack__recording;
INCSTACK__TLS struct incstack__record_local incstack__record_local;
static struct incstack__record mine;
static _Alignas(8) unsigned char log_bytes[4096];
static unsigned recorded;

enum { NEAR = 0x5000, BYTES = 48 };
#define FAR ((uint64_t)1 << 60) /* an address that needs a wide event */

void incstack__heap_on_alloc(const void *block, size_t bytes, struct incstack__caller caller)
{
	(void)block;
	ck_assert_uint_eq(bytes, BYTES);
	ck_assert_uint_eq(caller.fp, 5);
	recorded++;
}

static void begin(void)
{
	incstack__record_local.mine = &mine;
	incstack__record_local.newest = NULL;
	incstack__tracefile_log_init(&mine.log, log_bytes, sizeof(log_bytes));
	recorded = 0;
}

static bool is_recorded(uint64_t block, uint64_t position)
{
	const unsigned before = recorded;

	incstack__heap_on_new((const void *)(uintptr_t)block, BYTES,
			      (struct incstack__caller){.fp = 5}, position);
	return recorded > before;
}

/* The kinds of events, distinguished by their first words. */
static uint64_t kind_at(uint64_t position)
{
	return *(const uint64_t *)(log_bytes + position) >> INCSTACK__TRACEFILE_KIND_SHIFT;
}

static const struct {
	uint64_t block, bytes, time;
	uint64_t kind;
} events[] = {
	{NEAR, 16, 1, INCSTACK__TRACEFILE_SMALL},
	{NEAR, 1 << 20, 1, INCSTACK__TRACEFILE_ALLOC},
	{NEAR, (uint64_t)1 << 50, 1, INCSTACK__TRACEFILE_WIDE},
};

START_TEST(recorded_by_malloc)
{
	uint64_t position;

	begin();
	incstack__tracefile_put_alloc(&mine.log, 0, 0x9000, 16, 0); /* before the operator */
	position = incstack__heap_position();
	ck_assert_uint_eq(position, mine.log.used);
	for (uint64_t i = 0; i < 3; i++) /* what the allocator has also allocated */
		incstack__tracefile_put_alloc(&mine.log, 0, 0xa000 + 64 * i, events[i].bytes,
					      1 + i);
	const uint64_t at = mine.log.used;
	incstack__tracefile_put_alloc(&mine.log, events[_i].time, events[_i].block,
				      events[_i].bytes, 4);
	ck_assert_uint_eq(kind_at(at), events[_i].kind);
	ck_assert(!is_recorded(events[_i].block, position));
	ck_assert(is_recorded(events[_i].block + 16, position));
	ck_assert(is_recorded(0x9000, position)); /* that is an older block at this address */
	ck_assert(!is_recorded(0x9000, 0));
	for (uint64_t i = 0; i < 3; i++)
		ck_assert(!is_recorded(0xa000 + 64 * i, position));
}
END_TEST

/* What was freed counts as not allocated. */
START_TEST(freed_and_timed)
{
	uint64_t position;

	begin();
	position = incstack__heap_position();
	incstack__tracefile_put_free(&mine.log, 0, NEAR);
	incstack__tracefile_put_free(&mine.log, 0, FAR);
	ck_assert(is_recorded(NEAR, position));
	ck_assert(is_recorded(FAR, position));
	const uint64_t at = mine.log.used, late = (uint64_t)1 << 30;
	incstack__tracefile_put_time(&mine.log, late);
	ck_assert_uint_eq(mine.log.used, at + INCSTACK__TRACEFILE_WORD_BYTES);
	ck_assert_uint_eq(kind_at(at), INCSTACK__TRACEFILE_WIDE);
	incstack__tracefile_put_alloc(&mine.log, late + 1, NEAR, 16, 0);
	ck_assert(!is_recorded(NEAR, position));
	ck_assert(is_recorded(NEAR + 16, position));
}
END_TEST

/* The newest event of the slow path; a log that was written since; a thread without a record. */
START_TEST(not_in_the_log)
{
	uint64_t position;

	begin();
	incstack__tracefile_put_alloc(&mine.log, 0, NEAR, 16, 0);
	position = incstack__heap_position();
	incstack__record_local.newest = (const void *)NEAR;
	ck_assert(!is_recorded(NEAR, position));
	ck_assert_uint_eq(incstack__heap_position(), position);
	ck_assert_ptr_null(incstack__record_local.newest);
	ck_assert(is_recorded(NEAR, position));
	incstack__tracefile_log_clear(&mine.log);
	ck_assert(is_recorded(NEAR, position));
	incstack__record_local.mine = NULL;
	ck_assert_uint_eq(incstack__heap_position(), 0);
	ck_assert(is_recorded(NEAR, 0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("operators new of the recorder");
	TCase *tests = tcase_create("recorded once");

	tcase_add_loop_test(tests, recorded_by_malloc, 0, sizeof(events) / sizeof(events[0]));
	tcase_add_test(tests, freed_and_timed);
	tcase_add_test(tests, not_in_the_log);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
