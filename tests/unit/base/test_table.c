/* SPDX-License-Identifier: MIT
 *
 * The hash table of indices: every index is found under its hash, also where hashes are equal or lie in one
 * place, and after it has grown.
 */
#include <check.h>
#include <stdbool.h>

#include "base/table.h"

#include "run_suite.h"

enum { COUNT = 10000 };

static struct incstack__table table;

static void setup(void)
{
	ck_assert_int_eq(incstack__table_init(&table), 0);
}

static void teardown(void)
{
	free(table.slots);
}

/* 16 indices have each hash, and the hashes of all lie in a few places of a small table. */
static uint32_t hash_of(uint32_t index)
{
	return index / 16 * 64;
}

static bool has(uint32_t hash, uint32_t index)
{
	size_t cursor = hash;
	uint32_t at;

	while ((at = incstack__table_probe(&table, hash, &cursor)) != INCSTACK__NONE)
		if (at == index)
			return true;
	return false;
}

static unsigned count_of(uint32_t hash)
{
	size_t cursor = hash;
	unsigned count = 0;

	while (incstack__table_probe(&table, hash, &cursor) != INCSTACK__NONE)
		count++;
	return count;
}

static void fill(void)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		ck_assert(!has(hash_of(i), i));
		ck_assert_int_eq(incstack__table_insert(&table, hash_of(i), i), 0);
	}
}

START_TEST(each_index_is_found)
{
	fill();
	ck_assert_uint_eq(table.used, COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		ck_assert(has(hash_of(i), i));
		ck_assert_uint_eq(count_of(hash_of(i)), 16);
		ck_assert_uint_eq(count_of(hash_of(i) + 1), 0);
	}
}
END_TEST

/* So a search ends. */
START_TEST(some_slots_stay_free)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		ck_assert_int_eq(incstack__table_insert(&table, i, i), 0);
		ck_assert_uint_le(table.used, (table.mask + 1) / 8 * 5);
	}
}
END_TEST

START_TEST(cleared)
{
	const struct incstack__slot *slots;

	fill();
	slots = table.slots;
	incstack__table_clear(&table);
	ck_assert_uint_eq(count_of(0), 0);
	fill();
	ck_assert_ptr_eq(table.slots, slots);
	ck_assert(has(hash_of(COUNT - 1), COUNT - 1));
}
END_TEST

START_TEST(made_large_enough)
{
	const struct incstack__slot *slots;

	teardown();
	ck_assert_int_eq(incstack__table_init_for(&table, COUNT), 0);
	slots = table.slots;
	fill();
	ck_assert_ptr_eq(table.slots, slots);
}
END_TEST

/* Each single bit of either word changes the low bits. */
START_TEST(pairs_have_different_hashes)
{
	const uint32_t none = incstack__hash_pair(0, 0);

	for (int i = 0; i < 64; i++) {
		const uint64_t bit = (uint64_t)1 << i;

		ck_assert_uint_ne(incstack__hash_pair(bit, 0), none);
		ck_assert_uint_ne(incstack__hash_pair(0, bit), none);
		ck_assert_uint_ne(incstack__hash_pair(bit, 0), incstack__hash_pair(0, bit));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("table");
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, each_index_is_found);
	tcase_add_test(all, some_slots_stay_free);
	tcase_add_test(all, cleared);
	tcase_add_test(all, made_large_enough);
	tcase_add_test(all, pairs_have_different_hashes);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
