/* SPDX-License-Identifier: MIT
 *
 * Tests summaries of whole profiles against numbers worked out by hand: functions, overlaps,
 * nodes and edges as one set, and the stability of runs.
 */
#include <math.h>

#include "profile_files.h"
#include "run_suite.h"
#include "profile/analysis.h"

START_TEST(recursion_counts_once_in_a_function)
{
	struct incstack_profile *profile = profile_from("m;r;r 2\nm;r 1\nm;s;r 4\n");
	struct incstack__profile_function f[8];
	size_t count = 8;

	ck_assert_int_eq(incstack__profile_functions(profile, 0, f, &count), 0);
	ck_assert_uint_eq(count, 3);
	ck_assert_str_eq(f[0].name, "r");
	ck_assert_uint_eq(f[0].self, 7);
	ck_assert_uint_eq(f[0].total, 7);
	ck_assert_str_eq(f[1].name, "m");
	ck_assert_uint_eq(f[1].self, 0);
	ck_assert_uint_eq(f[1].total, 7);
	ck_assert_str_eq(f[2].name, "s");
	ck_assert_uint_eq(f[2].total, 4);
	count = 1;
	ck_assert_int_eq(incstack__profile_functions(profile, 0, f, &count), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(incstack__profile_functions(profile, 1, f, &count), INCSTACK_EINVAL);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(frames_without_a_name_are_one_function_by_method)
{
	static const struct incstack_profile_kind kind = {"samples", "count"};
	struct incstack_frame_object base = {.function = 16, .position = 1, .flags = 9};
	struct incstack_frame_object f = {
		.parent = &base, .function = 32, .position = 7, .flags = 1};
	struct incstack_frame_object g = {
		.parent = &base, .function = 32, .position = 8, .flags = 1};
	struct incstack_trace t2 = {.top = &g}, t1 = {.next = &t2, .top = &f};
	struct incstack_tree tree = {.traces = &t1, .count = 2, .objects = 3};
	struct incstack__profile_function functions[4];
	struct incstack_profile *profile = NULL;
	size_t count = 4;

	ck_assert_int_eq(incstack_profile_create(&kind, 1, &profile), 0);
	ck_assert_int_eq(
		incstack_profile_add_tree(profile, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL), 0);
	ck_assert_int_eq(incstack__profile_functions(profile, 0, functions, &count), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_ptr_null(functions[0].name);
	ck_assert_uint_eq(functions[0].function, 32);
	ck_assert_uint_eq(functions[0].self, 2);
	incstack_profile_destroy(profile);
}
END_TEST

/* Selves (x, y) and totals (m, x, y): a is 3 1 4 3 1 and b is 1 3 4 1 3, both with
 * mean 2.4; the products of the deviations sum to -0.8, their squares to 7.2. */
START_TEST(nodes_and_edges_as_one_set)
{
	struct incstack_profile *a = profile_from("m;x 3\nm;y 1\n");
	struct incstack_profile *b = profile_from("m;x 1\nm;y 3\n");
	struct incstack__profile_difference d;

	ck_assert_int_eq(incstack__profile_compare(a, b, 0, INCSTACK__MEASURE_BOTH, 0.1, &d), 0);
	ck_assert_double_eq_tol(d.correlation, -1.0 / 9, 1e-12);
	ck_assert_int_eq(
		incstack__profile_compare(a, b, 0, (enum incstack__profile_measure)3, 0.1, &d),
		INCSTACK_EINVAL);
	incstack_profile_destroy(a);
	incstack_profile_destroy(b);
}
END_TEST

START_TEST(an_overlay_has_both_sides)
{
	struct incstack_profile *a = profile_from("m;x 3\nm 1\n"), *both = NULL;
	struct incstack_profile *b = profile_from("m;y 7\n");
	char *side_a, *side_b;

	ck_assert_int_eq(incstack__profile_overlay(a, b, 0, &both), 0);
	side_a = folded_text(both, 0);
	side_b = folded_text(both, 1);
	ck_assert_str_eq(side_a, "m 1\nm;x 3\n");
	ck_assert_str_eq(side_b, "m;y 7\n");
	free(side_a);
	free(side_b);
	incstack_profile_destroy(a);
	incstack_profile_destroy(b);
	incstack_profile_destroy(both);
}
END_TEST

static struct incstack__profile_stability stability_of(const char *const *runs, size_t count)
{
	const struct incstack_profile *profiles[4] = {NULL};
	struct incstack__profile_stability stability;

	for (size_t i = 0; i < count; i++)
		profiles[i] = profile_from(runs[i]);
	ck_assert_int_eq(incstack__profile_stability(profiles, count, 0, INCSTACK__MEASURE_SELF,
						     0.1, &stability),
			 0);
	for (size_t i = 0; i < count; i++)
		incstack_profile_destroy((struct incstack_profile *)(uintptr_t)profiles[i]);
	return stability;
}

START_TEST(equal_runs_are_stable)
{
	const char *const runs[] = {"m;x 3\nm 1\n", "m;x 6\nm 2\n", "m;x 3\nm 1\n"};
	struct incstack__profile_stability s = stability_of(runs, 3);

	ck_assert_double_eq_tol(s.overlap.low, 1, 1e-12);
	ck_assert_double_eq_tol(s.cover.median, 1, 1e-12);
	ck_assert_double_eq_tol(s.correlation.high, 1, 1e-12);
}
END_TEST

/* The average of the four is 1/2 a, 1/4 b, 1/4 c; the runs overlap it by 1/2, 1/2,
 * 1/4, 1/4. All three edges of the average are hot, one of each run. */
START_TEST(quartiles_of_runs_that_differ)
{
	const char *const runs[] = {"a 5\n", "b 1\n", "a 1\n", "c 2\n"};
	struct incstack__profile_stability s = stability_of(runs, 4);

	ck_assert_double_eq_tol(s.overlap.low, 0.25, 1e-12);
	ck_assert_double_eq_tol(s.overlap.median, 0.375, 1e-12);
	ck_assert_double_eq_tol(s.overlap.high, 0.5, 1e-12);
	ck_assert_double_eq_tol(s.cover.median, 1.0 / 3, 1e-12);
}
END_TEST

/* (1, 0) against (1/2, 1/2): one side has no variance, so the correlation is undefined. */
START_TEST(what_is_not_applicable_is_left_out)
{
	const char *const runs[] = {"a 1\n", "b 1\n"};
	struct incstack__profile_stability s = stability_of(runs, 2);

	ck_assert(isnan(s.correlation.median));
	ck_assert_double_eq_tol(s.overlap.median, 0.5, 1e-12);
}
END_TEST

/* Weights of 57 bits that differ in the last three. */
START_TEST(an_average_is_exact)
{
	const char *const runs[] = {
		"a;b;d 72057594037927937\nc;a;d 72057594037927937\n",
		"a;b;d 72057594037927940\nc;a;d 72057594037927937\n",
		"a;b;d 72057594037927937\nc;a;d 72057594037927941\n",
		"a;b;d 72057594037927938\nc;a;d 72057594037927938\n",
	};
	struct incstack__profile_stability s = stability_of(runs, 4);

	ck_assert_double_eq_tol(s.correlation.low, -0.5, 1e-12);
	ck_assert_double_eq_tol(s.correlation.median, 0, 1e-12);
	ck_assert_double_eq_tol(s.correlation.high, 0.5, 1e-12);
}
END_TEST

/* The same in the first order, so only the totals make a difference. */
START_TEST(an_average_is_exact_behind_the_weights)
{
	const char *const runs[] = {
		"c;c 72057594037927940\nb;a 72057594037927937\n",
		"c;c 72057594037927938\nb;a 72057594037927942\n",
		"c;c 72057594037927937\nb;a 72057594037927936\n",
	};
	struct incstack__profile_stability s = stability_of(runs, 3);

	ck_assert_double_eq_tol(s.correlation.low, 0, 1e-12);
	ck_assert_double_eq_tol(s.correlation.median, 1, 1e-12);
	ck_assert_double_eq_tol(s.correlation.high, 1, 1e-12);
}
END_TEST

/* More runs with large weights than an exact average has room for. The average is flat over each
 * three of them: what its rounding leaves is no variance. */
START_TEST(an_average_of_many_runs_is_rounded)
{
	static const int shifts[] = {2, -1, -1};
	const struct incstack_profile *profiles[30];
	struct incstack__profile_stability s;
	char text[64];

	for (size_t i = 0; i < 30; i++) {
		const long weight = (1l << 56) + (long)(i / 3) * 2 + 1, shift = shifts[i % 3];

		(void)snprintf(text, sizeof(text), "a %ld\nb %ld\n", weight + shift,
			       weight - shift);
		profiles[i] = profile_from(text);
	}
	ck_assert_int_eq(
		incstack__profile_stability(profiles, 30, 0, INCSTACK__MEASURE_SELF, 1, &s), 0);
	ck_assert(isnan(s.correlation.median));
	ck_assert_double_eq_tol(s.overlap.low, 1, 1e-12);
	for (size_t i = 0; i < 30; i++)
		incstack_profile_destroy((struct incstack_profile *)(uintptr_t)profiles[i]);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("summary");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, recursion_counts_once_in_a_function);
	tcase_add_test(tests, frames_without_a_name_are_one_function_by_method);
	tcase_add_test(tests, nodes_and_edges_as_one_set);
	tcase_add_test(tests, an_overlay_has_both_sides);
	tcase_add_test(tests, equal_runs_are_stable);
	tcase_add_test(tests, quartiles_of_runs_that_differ);
	tcase_add_test(tests, what_is_not_applicable_is_left_out);
	tcase_add_test(tests, an_average_is_exact);
	tcase_add_test(tests, an_average_is_exact_behind_the_weights);
	tcase_add_test(tests, an_average_of_many_runs_is_rounded);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
