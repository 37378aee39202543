/* SPDX-License-Identifier: MIT
 *
 * The armed frames of a stack, against a set that is searched in the simplest way.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "../armed.h"
#include "run_suite.h"

enum { NAMES = 64 };

static uint64_t random_below(uint64_t n)
{
	static uint64_t x = 88172645463325252u;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x % n;
}

static uintptr_t youngest(const bool *is_armed)
{
	for (uintptr_t i = 1; i < NAMES; i++)
		if (is_armed[i])
			return i;
	return 0;
}

/* Takes all below the limit from both. */
static void take(struct incstack__armed *armed, bool *is_armed, uintptr_t limit)
{
	uintptr_t expected = 0, oldest = 0;
	uint32_t n = 0;
	for (uintptr_t i = 1; i < limit; i++) {
		if (is_armed[i]) {
			expected = i;
			n++;
		}
		is_armed[i] = false;
	}
	ck_assert_uint_eq(incstack__armed_take(armed, limit, &oldest), n);
	ck_assert_uint_eq(oldest, expected);
}

START_TEST(frames_are_found_in_any_order)
{
	struct incstack__armed armed = {NULL, 0, 0};
	bool is_armed[NAMES] = {false};
	for (int i = 0; i < 100000; i++) {
		uintptr_t name = 1 + random_below(NAMES - 1);
		ck_assert_int_eq(incstack__armed_has(&armed, name), is_armed[name]);
		ck_assert_uint_eq(incstack__armed_youngest(&armed), youngest(is_armed));
		switch (random_below(4)) {
		case 0:
			take(&armed, is_armed, name);
			break;
		case 1:
			ck_assert_int_eq(incstack__armed_remove(&armed, name), is_armed[name]);
			is_armed[name] = false;
			break;
		default:
			ck_assert_int_eq(incstack__armed_reserve(&armed, 1), 0);
			ck_assert_int_eq(incstack__armed_add(&armed, name),
					 is_armed[name] ? -1 : 0);
			is_armed[name] = true;
		}
	}
	incstack__armed_free(&armed);
}
END_TEST

START_TEST(a_full_list_refuses)
{
	struct incstack__armed armed = {NULL, 0, 0};
	ck_assert_int_eq(incstack__armed_add(&armed, 8), -1);
	ck_assert_int_eq(incstack__armed_reserve(&armed, 2), 0);
	uintptr_t name = 8;
	while (armed.count < armed.room)
		ck_assert_int_eq(incstack__armed_add(&armed, name += 8), 0);
	ck_assert_int_eq(incstack__armed_add(&armed, name + 8), -1);
	ck_assert_uint_eq(incstack__armed_youngest(&armed), 16);
	incstack__armed_free(&armed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("armed frames");
	TCase *tc = tcase_create("armed frames");
	tcase_add_test(tc, frames_are_found_in_any_order);
	tcase_add_test(tc, a_full_list_refuses);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
