/* SPDX-License-Identifier: MIT
 *
 * Tests comparison, merge and average against numbers that were worked out by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile_files.h"
#include "run_suite.h"
#include "profile/analysis.h"

static struct incstack__profile_difference compare(const char *a, const char *b,
						   enum incstack__profile_measure measure)
{
	struct incstack_profile *p = profile_from(a), *q = profile_from(b);
	struct incstack__profile_difference d;

	ck_assert_int_eq(incstack__profile_compare(p, q, 0, measure, 0.1, &d), 0);
	incstack_profile_destroy(p);
	incstack_profile_destroy(q);
	return d;
}

static void folded_is(const struct incstack_profile *profile, const char *expected)
{
	const struct bytes text = write_bytes(profile, INCSTACK_FORMAT_FOLDED, 0);

	ck_assert_str_eq(text.at, expected);
	free(text.at);
}

START_TEST(identical_profiles_give_one)
{
	const char *text = "m;a 70\nm;b 20\nm;b;c 9\nm 1\n",
		   *longer = "m 10\nm;b 200\nm;a 700\nm;b;c 90\n";

	for (int m = INCSTACK__MEASURE_SELF; m <= INCSTACK__MEASURE_TOTAL; m++) {
		struct incstack__profile_difference d =
			compare(text, longer, (enum incstack__profile_measure)m);

		ck_assert_double_eq_tol(d.overlap, 1, 1e-12);
		ck_assert_double_eq(d.cover_a, 1);
		ck_assert_double_eq(d.cover_b, 1);
		ck_assert_double_eq_tol(d.correlation, 1, 1e-12);
		ck_assert_uint_eq(d.common, 4);
	}
}
END_TEST

/* Self weights of a: x 0.5, y 0.4, z 0.1; of b: x 0.2, y 0.05, w 0.75. */
START_TEST(overlap_is_the_sum_of_the_smaller)
{
	struct incstack__profile_difference d =
		compare("x 50\ny 40\nz 10\n", "x 20\ny 5\nw 75\n", INCSTACK__MEASURE_SELF);

	ck_assert_double_eq_tol(d.overlap, 0.25, 1e-12);
	ck_assert_uint_eq(d.common, 2);
	ck_assert_uint_eq(d.only_a, 1);
	ck_assert_uint_eq(d.only_b, 1);
}
END_TEST

/* Hot in a: x, y, z (10 is a fifth of 50). Hot in b: x, w; y is below 7.5. */
START_TEST(coverage_has_two_directions)
{
	struct incstack__profile_difference d =
		compare("x 50\ny 40\nz 10\n", "x 20\ny 5\nw 75\n", INCSTACK__MEASURE_SELF);

	ck_assert_double_eq_tol(d.cover_a, 1.0 / 2, 1e-12);
	ck_assert_double_eq_tol(d.cover_b, 1.0 / 3, 1e-12);
}
END_TEST

START_TEST(exactly_the_threshold_is_hot)
{
	struct incstack__profile_difference d =
		compare("x 30\ny 3\n", "x 30\n", INCSTACK__MEASURE_SELF);

	ck_assert_double_eq_tol(d.cover_b, 0.5, 1e-12);
	d = compare("x 31\ny 3\n", "x 30\n", INCSTACK__MEASURE_SELF);
	ck_assert_double_eq_tol(d.cover_b, 1, 1e-12);
}
END_TEST

/* 0.07 * 100 is more than 7 in binary. */
START_TEST(the_threshold_forgives_rounding)
{
	struct incstack_profile *p = profile_from("x 100\ny 7\n"), *q = profile_from("x 30\n");
	struct incstack__profile_difference d;

	ck_assert_int_eq(incstack__profile_compare(p, q, 0, INCSTACK__MEASURE_SELF, 0.07, &d), 0);
	ck_assert_double_eq_tol(d.cover_b, 0.5, 1e-12);
	ck_assert_int_eq(incstack__profile_compare(p, q, 0, INCSTACK__MEASURE_SELF, 1.1, &d),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_compare(p, q, 1, INCSTACK__MEASURE_SELF, 0.1, &d),
			 INCSTACK_EINVAL);
	incstack_profile_destroy(p);
	incstack_profile_destroy(q);
}
END_TEST

/* Total weights of a: m 4, m;x 3 (sum 7); of b: m 4, m;x 1 (sum 5). */
START_TEST(totals_count_callees)
{
	struct incstack__profile_difference d =
		compare("m 1\nm;x 3\n", "m 3\nm;x 1\n", INCSTACK__MEASURE_TOTAL);

	ck_assert_double_eq_tol(d.overlap, 4.0 / 7 + 1.0 / 5, 1e-12);
}
END_TEST

/* (1,2) (2,1) (3,6): covariance sum 4, variances sums 2 and 14. */
START_TEST(correlation_is_pearsons)
{
	struct incstack__profile_difference d =
		compare("x 1\ny 2\nz 3\n", "x 2\ny 1\nz 6\n", INCSTACK__MEASURE_SELF);

	ck_assert_double_eq_tol(d.correlation, 4 / sqrt(28), 1e-12);
	d = compare("x 1\n", "y 1\n", INCSTACK__MEASURE_SELF);
	ck_assert_double_eq_tol(d.correlation, -1, 1e-12);
}
END_TEST

START_TEST(without_variance_equal_is_one_and_else_unknown)
{
	ck_assert_double_eq(compare("x 3\ny 3\n", "x 7\ny 7\n", INCSTACK__MEASURE_SELF).correlation,
			    1);
	ck_assert_double_eq(compare("x 3\n", "x 3\n", INCSTACK__MEASURE_SELF).correlation, 1);
	ck_assert_double_nan(
		compare("x 3\ny 3\n", "x 1\ny 2\n", INCSTACK__MEASURE_SELF).correlation);
	ck_assert_double_nan(compare("x 3\ny 3\n", "", INCSTACK__MEASURE_SELF).correlation);
}
END_TEST

START_TEST(empty_profiles)
{
	struct incstack__profile_difference d = compare("", "", INCSTACK__MEASURE_SELF);

	ck_assert_double_eq(d.overlap, 1);
	ck_assert_double_eq(d.correlation, 1);
	d = compare("x 1\n", "", INCSTACK__MEASURE_SELF);
	ck_assert_double_eq(d.overlap, 0);
	ck_assert_double_nan(d.cover_a);
	ck_assert_double_eq(d.cover_b, 0);
}
END_TEST

START_TEST(merge_sums_by_name)
{
	struct incstack_profile *p = profile_from("m;x 1\nm 2\n"),
				*q = profile_from("n 5\nm;x 3\n");

	ck_assert_int_eq(incstack_profile_merge(p, q), 0);
	folded_is(p, "m 2\nm;x 4\nn 5\n");
	ck_assert_int_eq(incstack_profile_merge(p, p), INCSTACK_EINVAL);
	incstack_profile_destroy(p);
	incstack_profile_destroy(q);
}
END_TEST

START_TEST(merge_refuses_other_kinds)
{
	static const struct incstack_profile_kind bytes = {"samples", "bytes"};
	struct incstack_profile *p = profile_from("m 2\n"), *q = NULL;

	ck_assert_int_eq(incstack_profile_create(&bytes, 1, &q), 0);
	ck_assert_int_eq(incstack_profile_merge(p, q), INCSTACK_EINVAL);
	incstack_profile_destroy(p);
	incstack_profile_destroy(q);
}
END_TEST

START_TEST(merge_refuses_a_total_too_large_and_changes_nothing)
{
	struct incstack_profile *p = profile_from("m 9223372036854775806\n"),
				*q = profile_from("a 1\nb 1\n");

	ck_assert_int_eq(incstack_profile_merge(p, q), INCSTACK_ERANGE);
	folded_is(p, "m 9223372036854775806\n");
	incstack_profile_destroy(p);
	incstack_profile_destroy(q);
}
END_TEST

/* The short run counts as much as the long one: its weights count tenfold. */
START_TEST(average_gives_each_profile_an_equal_say)
{
	struct incstack_profile *p = profile_from("x 90\ny 10\n"), *q = profile_from("x 3\nz 7\n");
	const struct incstack_profile *both[] = {p, q};
	struct incstack_profile *average = NULL;

	ck_assert_int_eq(incstack__profile_average(both, 2, &average), 0);
	folded_is(average, "x 120\ny 10\nz 70\n");
	ck_assert_int_eq(incstack_profile_merge(average, p), 0); /* the kinds were kept */
	ck_assert_int_eq(incstack__profile_average(both, 0, &average), INCSTACK_EINVAL);
	incstack_profile_destroy(p);
	incstack_profile_destroy(q);
	incstack_profile_destroy(average);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("compare");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, identical_profiles_give_one);
	tcase_add_test(tests, overlap_is_the_sum_of_the_smaller);
	tcase_add_test(tests, coverage_has_two_directions);
	tcase_add_test(tests, exactly_the_threshold_is_hot);
	tcase_add_test(tests, the_threshold_forgives_rounding);
	tcase_add_test(tests, totals_count_callees);
	tcase_add_test(tests, correlation_is_pearsons);
	tcase_add_test(tests, without_variance_equal_is_one_and_else_unknown);
	tcase_add_test(tests, empty_profiles);
	tcase_add_test(tests, merge_sums_by_name);
	tcase_add_test(tests, merge_refuses_other_kinds);
	tcase_add_test(tests, merge_refuses_a_total_too_large_and_changes_nothing);
	tcase_add_test(tests, average_gives_each_profile_an_equal_say);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
