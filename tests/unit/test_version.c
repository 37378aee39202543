/* SPDX-License-Identifier: MIT
 *
 * The linked library is that of the headers, and every error code has a text of
 * its own.
 */
#include <limits.h>
#include <stdlib.h>

#include <incstack/incstack.h>

#include "run_suite.h"

START_TEST(version_is_that_of_the_headers)
{
	ck_assert_int_eq(incstack_version(), INCSTACK_VERSION);
}
END_TEST

START_TEST(error_texts_are_distinct)
{
	for (int a = 0; a >= INCSTACK_ERANGE; a--) {
		ck_assert_ptr_nonnull(incstack_error_text(a));
		ck_assert_str_ne(incstack_error_text(a), "unknown error");
		for (int b = 0; b > a; b--)
			ck_assert_str_ne(incstack_error_text(a), incstack_error_text(b));
	}
}
END_TEST

START_TEST(other_numbers_are_unknown)
{
	const int others[] = {1, INT_MAX, INT_MIN, INCSTACK_ERANGE - 1};

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
