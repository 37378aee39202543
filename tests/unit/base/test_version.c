/* SPDX-License-Identifier: MIT
 *
 * Tests that the linked library is that of the headers, and that every error code has its own
 * text.
 */
#include <limits.h>
#include <stdlib.h>

#include <incstack/incstack.h>
#include <incstack/profile.h>
#include <incstack/safepoint.h>

#include "run_suite.h"

START_TEST(version_is_that_of_the_headers)
{
	ck_assert_int_eq(incstack_version(), INCSTACK_VERSION);
}
END_TEST

static const int codes[] = {0,
			    INCSTACK_EINVAL,
			    INCSTACK_ENOMEM,
			    INCSTACK_ELIMIT,
			    INCSTACK_ETHREAD,
			    INCSTACK_EBUSY,
			    INCSTACK_EUNWIND,
			    INCSTACK_ERANGE,
			    INCSTACK_EROOM,
			    INCSTACK_ETIMEDOUT,
			    INCSTACK_EFORKED,
			    INCSTACK_EFORMAT,
			    INCSTACK_EIO};
enum { CODES = sizeof(codes) / sizeof(codes[0]) };

START_TEST(error_texts_are_distinct)
{
	for (int a = 0; a < CODES; a++) {
		ck_assert_str_ne(incstack_error_text(codes[a]), "unknown error");
		for (int b = 0; b < a; b++) {
			ck_assert_int_ne(codes[a], codes[b]);
			ck_assert_str_ne(incstack_error_text(codes[a]),
					 incstack_error_text(codes[b]));
		}
	}
}
END_TEST

START_TEST(other_numbers_are_unknown)
{
	const int others[] = {1, INT_MAX, INT_MIN, INCSTACK_EROOM - 1};

	ck_assert_str_eq(incstack_error_text(0), "success");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_str_eq(incstack_error_text(others[i]), "unknown error");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("version");
	TCase *tests = tcase_create("version");

	suite_add_tcase(suite, tests);
	tcase_add_test(tests, version_is_that_of_the_headers);
	tcase_add_test(tests, error_texts_are_distinct);
	tcase_add_test(tests, other_numbers_are_unknown);
	return run_suite(suite);
}
