/* SPDX-License-Identifier: MIT
 *
 * Tests moments: what looking at this process finds, what a damaged moment does, how a page is split between blocks,
 * and who gets the memory that no block has.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <incstack/incstack.h>

#include "run_suite.h"
#include "tracefile/resident.h"

enum { PAGE = 4096 };

/* ---- looking --------------------------------------------------------------------- */

static int64_t read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return pread(fd, to, bytes, (off_t)offset);
}

static struct incstack__moment_block *look(void *memory, size_t room)
{
	const struct incstack__moment_source source = {
		.maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC),
		.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
		.rollup = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC),
		.read = read_at,
	};
	struct incstack__moment_block *block = incstack__moment_look(&source, memory, room);

	close(source.maps);
	close(source.pagemap);
	close(source.rollup);
	return block;
}

/* Returns the resident bytes of a block in this process. */
static uint64_t resident_here(const void *at, size_t bytes)
{
	struct incstack__resident_block live = {(uintptr_t)at, bytes, bytes, 1};
	void *memory = malloc(INCSTACK__MOMENT_ROOM);
	struct incstack__moment_block *block = look(memory, INCSTACK__MOMENT_ROOM);
	struct incstack__moment moment;
	struct incstack__resident resident;
	uint64_t found;

	ck_assert_ptr_nonnull(block);
	ck_assert_uint_eq(incstack__moment_seal(block), sizeof(block->block) + block->block.length);
	ck_assert_ptr_null(
		incstack__moment_read(&moment, (unsigned char *)&block->head, block->block.length));
	ck_assert_int_eq(incstack__resident_find(&resident, &moment, &live, 1, 2), 0);
	ck_assert_uint_eq(resident.outside, 0);
	found = resident.resident[1];
	incstack__resident_free(&resident);
	incstack__moment_free(&moment);
	free(memory);
	return found;
}

START_TEST(pages_are_those_of_mincore)
{
	enum { PAGES = 1000 };
	char *at = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char in_core[PAGES];
	uint64_t sum = 0;

	ck_assert_ptr_ne(at, MAP_FAILED);
	for (int i = 0; i < PAGES; i += 3)
		at[i * PAGE] = 1;
	madvise(at, 99 * (size_t)PAGE, MADV_DONTNEED);
	ck_assert_int_eq(mincore(at, (size_t)PAGES * PAGE, in_core), 0);
	for (int i = 0; i < PAGES; i++)
		sum += (in_core[i] & 1) * (size_t)PAGE;
	ck_assert_uint_gt(sum, 0);
	ck_assert_uint_eq(resident_here(at, (size_t)PAGES * PAGE), sum);
	ck_assert_uint_eq(resident_here(at + 99 * (size_t)PAGE + 10, 100), 100);
	munmap(at, (size_t)PAGES * PAGE);
}
END_TEST

START_TEST(little_room_makes_it_partial)
{
	void *memory = malloc(INCSTACK__MOMENT_ROOM_LEAST);
	const size_t bytes = UINT64_C(2) << 30;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct incstack__moment_block *block;
	struct incstack__moment moment;

	if (at == MAP_FAILED) { /* a limit, or no overcommit */
		free(memory);
		return;
	}
	madvise(at, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < 140000; i++)
		(void)*(volatile char *)(at + 2 * i * PAGE);
	block = look(memory, INCSTACK__MOMENT_ROOM_LEAST);
	ck_assert_ptr_nonnull(block);
	ck_assert_uint_eq(block->head.flags, INCSTACK__MOMENT_PARTIAL);
	ck_assert_ptr_null(
		incstack__moment_read(&moment, (unsigned char *)&block->head, block->block.length));
	incstack__moment_free(&moment);
	munmap(at, bytes);
	free(memory);
}
END_TEST

/* ---- by hand --------------------------------------------------------------------- */

/* A payload that is written area by area. */
struct made {
	unsigned char bytes[4096];
	size_t used;
};

static struct incstack__moment_head *head_of(struct made *made)
{
	return (struct incstack__moment_head *)(void *)made->bytes;
}

static void begin(struct made *made)
{
	*made = (struct made){.used = sizeof(struct incstack__moment_head)};
	head_of(made)->page_bytes = PAGE;
}

static void add_area(struct made *made, uint64_t low, uint64_t pages, uint32_t kind)
{
	const struct incstack__moment_area area = {low, low + pages * PAGE, kind, 0};

	memcpy(made->bytes + made->used, &area, sizeof(area));
	made->used += sizeof(area);
	head_of(made)->areas++;
}

/* Adds a run to the area that was added last, which has `before` runs. */
static void add_run(struct made *made, uint32_t before, uint32_t pages, enum incstack__page state)
{
	const uint32_t run = pages << INCSTACK__RUN_STATE_BITS | state;
	unsigned char *area = made->bytes + made->used - before * sizeof(run) -
			      sizeof(struct incstack__moment_area);
	const uint32_t runs = before + 1;

	memcpy(area + offsetof(struct incstack__moment_area, runs), &runs, sizeof(runs));
	memcpy(made->bytes + made->used, &run, sizeof(run));
	made->used += sizeof(run);
	head_of(made)->runs++;
}

static const char *problem_of(const struct made *made, size_t bytes)
{
	struct incstack__moment moment;
	const char *problem = incstack__moment_read(&moment, made->bytes, bytes);

	incstack__moment_free(&moment);
	return problem;
}

static struct incstack__resident find(const struct made *made,
				      struct incstack__resident_block *blocks, size_t count)
{
	struct incstack__moment moment;
	struct incstack__resident resident;
	uint64_t sum;

	ck_assert_ptr_null(incstack__moment_read(&moment, made->bytes, made->used));
	ck_assert_int_eq(incstack__resident_find(&resident, &moment, blocks, count, 4), 0);
	incstack__moment_free(&moment);
	sum = resident.live_anonymous;
	for (int owner = 0; owner < INCSTACK__OWNERS; owner++)
		sum += resident.rest[owner];
	ck_assert_uint_eq(sum, resident.anonymous);
	return resident;
}

#define HEAP UINT64_C(0x10000)
#define ARENA UINT64_C(0x7f0004000000)

START_TEST(a_page_is_split_by_bytes)
{
	struct incstack__resident_block blocks[] = {
		{HEAP + PAGE - 10, 100, 100, 1}, /* 10 bytes on a resident page, 90 not */
		{HEAP + 100, 50, 50, 2},
		{HEAP + 2 * PAGE + 5, 3 * PAGE, 3 * PAGE, 3}, /* swapped, resident, not */
		{HEAP + 90 * PAGE, 7, 7, 3},                  /* in no area */
		{HEAP + PAGE + 200, 0, 0, 3},                 /* empty */
	};
	struct incstack__resident resident;
	struct made made;

	begin(&made);
	add_area(&made, HEAP, 8, INCSTACK__AREA_HEAP);
	add_run(&made, 0, 1, INCSTACK__PAGE_OWN);
	add_run(&made, 1, 1, INCSTACK__PAGE_ABSENT);
	add_run(&made, 2, 1, INCSTACK__PAGE_SWAPPED);
	add_run(&made, 3, 1, INCSTACK__PAGE_COMMON);
	add_run(&made, 4, 1, INCSTACK__PAGE_ABSENT);
	add_run(&made, 5, 2, INCSTACK__PAGE_OWN);
	resident = find(&made, blocks, 5);
	ck_assert_uint_eq(resident.resident[1], 10);
	ck_assert_uint_eq(resident.resident[2], 50);
	ck_assert_uint_eq(resident.resident[3], PAGE + 5);
	ck_assert_uint_eq(resident.swapped[3], PAGE - 5);
	ck_assert_uint_eq(resident.live, 65 + PAGE);
	ck_assert_uint_eq(resident.outside, 7);
	ck_assert_uint_eq(resident.anonymous, 4 * PAGE);
	ck_assert_uint_eq(resident.common, PAGE);
	ck_assert_uint_eq(resident.rest[INCSTACK__OWNER_ALLOCATOR], 3 * PAGE - 65);
	ck_assert_uint_eq(resident.rest_swapped[INCSTACK__OWNER_ALLOCATOR], 5);
	ck_assert_uint_eq(resident.shared, 2 * PAGE - 65); /* a page has no block */
	ck_assert_uint_eq(resident.held, 8 * PAGE);
	incstack__resident_free(&resident);
}
END_TEST

START_TEST(no_byte_counts_twice)
{
	/* Damage, or a release that was not seen: each block would have all four pages. */
	struct incstack__resident_block blocks[] = {{HEAP + 16, 4 * PAGE, 4 * PAGE, 1},
						    {HEAP + 32, 4 * PAGE, 4 * PAGE, 2},
						    {HEAP + 64, UINT64_MAX, UINT64_MAX, 3}};
	struct incstack__resident resident;
	struct made made;

	begin(&made);
	add_area(&made, HEAP, 4, INCSTACK__AREA_HEAP);
	add_run(&made, 0, 4, INCSTACK__PAGE_OWN);
	resident = find(&made, blocks, 3);
	ck_assert_uint_eq(resident.live, 4 * PAGE - 16);
	ck_assert_uint_eq(resident.resident[1], 16);
	ck_assert_uint_eq(resident.resident[2], 32);
	incstack__resident_free(&resident);
}
END_TEST

START_TEST(a_sampled_block_stands_for_more)
{
	struct incstack__resident_block blocks[] = {{HEAP, 2 * PAGE, 100 * PAGE, 1}};
	struct incstack__resident resident;
	struct made made;

	begin(&made);
	add_area(&made, HEAP, 2, INCSTACK__AREA_HEAP);
	add_run(&made, 0, 1, INCSTACK__PAGE_OWN);
	resident = find(&made, blocks, 1);
	ck_assert_uint_eq(resident.resident[1], 50 * PAGE);
	ck_assert_uint_eq(resident.requested, 100 * PAGE);
	incstack__resident_free(&resident);
}
END_TEST

START_TEST(the_rest_has_an_owner)
{
	enum { BIG = 100 * PAGE };
	const uint64_t chunk = UINT64_C(0x7f1000000000);
	struct incstack__resident_block blocks[] = {{chunk + 16, BIG, BIG, 1}};
	struct incstack__resident resident;
	struct made made;

	begin(&made);
	add_area(&made, HEAP, 3, INCSTACK__AREA_FILE); /* data, and behind it .bss */
	add_run(&made, 0, 1, INCSTACK__PAGE_OWN);
	add_run(&made, 1, 2, INCSTACK__PAGE_FILE);
	add_area(&made, HEAP + 3 * PAGE, 2, INCSTACK__AREA_ANONYMOUS);
	add_run(&made, 0, 2, INCSTACK__PAGE_OWN);
	add_area(&made, ARENA, 33, INCSTACK__AREA_ANONYMOUS); /* without a block */
	add_run(&made, 0, 4, INCSTACK__PAGE_OWN);
	add_area(&made, ARENA + 33 * PAGE, (64 << 20) / PAGE - 33, INCSTACK__AREA_CLOSED);
	add_area(&made, ARENA + (64 << 20), 8, INCSTACK__AREA_ANONYMOUS); /* no stack */
	add_run(&made, 0, 8, INCSTACK__PAGE_OWN);
	add_area(&made, ARENA + (128 << 20), 1, INCSTACK__AREA_CLOSED); /* a guard */
	add_area(&made, ARENA + (128 << 20) + PAGE, 20, INCSTACK__AREA_ANONYMOUS);
	add_run(&made, 0, 16, INCSTACK__PAGE_OWN);
	add_area(&made, chunk, 132, INCSTACK__AREA_ANONYMOUS); /* a large block and a neighbour */
	add_run(&made, 0, 132, INCSTACK__PAGE_OWN);
	add_area(&made, UINT64_C(0x7fff00000000), 64, INCSTACK__AREA_STACK);
	add_run(&made, 0, 64, INCSTACK__PAGE_OWN);
	resident = find(&made, blocks, 1);
	ck_assert_uint_eq(resident.rest[INCSTACK__OWNER_FILES], 3 * PAGE);
	ck_assert_uint_eq(resident.rest[INCSTACK__OWNER_ALLOCATOR], 4 * PAGE + PAGE);
	ck_assert_uint_eq(resident.rest[INCSTACK__OWNER_STACKS], (16 + 64) * PAGE);
	ck_assert_uint_eq(resident.rest[INCSTACK__OWNER_OTHER], (8 + 31) * PAGE);
	ck_assert_uint_eq(resident.file, 2 * PAGE);
	incstack__resident_free(&resident);
}
END_TEST

START_TEST(damage_is_refused)
{
	struct made good;
	struct made made;

	begin(&good);
	add_area(&good, HEAP, 4, INCSTACK__AREA_HEAP);
	add_run(&good, 0, 2, INCSTACK__PAGE_OWN);
	add_run(&good, 1, 2, INCSTACK__PAGE_FILE);
	add_area(&good, HEAP + 4 * PAGE, 1, INCSTACK__AREA_FILE);
	ck_assert_ptr_null(problem_of(&good, good.used));
	for (size_t bytes = 0; bytes < good.used; bytes++)
		ck_assert_ptr_nonnull(problem_of(&good, bytes));
	made = good;
	head_of(&made)->page_bytes = 0;
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	head_of(&made)->page_bytes = 5000;
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	head_of(&made)->areas = UINT32_MAX;
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	head_of(&made)->runs = 1;
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	add_run(&made, 0, 2, INCSTACK__PAGE_OWN); /* more pages than the area */
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	add_run(&made, 0, 1, INCSTACK__PAGES); /* no state */
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	add_run(&made, 0, 0, INCSTACK__PAGE_OWN);
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	add_area(&made, HEAP, 1, INCSTACK__AREA_HEAP); /* not ascending */
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	add_area(&made, HEAP + 9 * PAGE + 1, 1, INCSTACK__AREA_HEAP); /* in the middle of a page */
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	add_area(&made, HEAP + 9 * PAGE, 1, INCSTACK__AREA_KINDS);
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
	made = good;
	add_area(&made, HEAP + 9 * PAGE, 0, INCSTACK__AREA_HEAP); /* empty */
	ck_assert_ptr_nonnull(problem_of(&made, made.used));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("moment");
	Suite *suite = suite_create("tracefile");

	tcase_add_test(tests, pages_are_those_of_mincore);
	tcase_add_test(tests, little_room_makes_it_partial);
	tcase_add_test(tests, a_page_is_split_by_bytes);
	tcase_add_test(tests, no_byte_counts_twice);
	tcase_add_test(tests, a_sampled_block_stands_for_more);
	tcase_add_test(tests, the_rest_has_an_owner);
	tcase_add_test(tests, damage_is_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
