/* SPDX-License-Identifier: MIT
 *
 * Tests arguments of the functions for profiles that are invalid: each function returns the error that its
 * header names.
 */
#include <stdio.h>

#include <incstack/profile.h>

#include "answers.h"
#include "profile/analysis.h"
#include "profile/reduce.h"
#include "run_suite.h"

START_TEST(profile_is_checked)
{
	struct incstack_profile *p, *other;
	const struct incstack_profile_kind kind = {"samples", "count"};
	struct incstack_profile_kind other_kind;
	struct incstack_profile_node at = {.size = sizeof(at)}, unsized_node = {0};
	const struct incstack_profile_frame named = {
		.size = sizeof(named), .name = "f", .name_length = 1};
	const struct incstack_profile_frame nameless = {.size = sizeof(nameless), .name = ""};
	const struct incstack_profile_frame label = {.size = sizeof(label),
						     .flags = INCSTACK_PROFILE_LABEL};
	const struct incstack_profile_frame broken = {
		.size = sizeof(broken), .name = "\xff", .name_length = 1};
	struct incstack_profile_frame unsized = {.name = "f", .name_length = 1};
	struct incstack_profile_meta meta = {0};
	struct incstack_profile_problem problem = {0};
	struct incstack__profile_difference difference;
	uint32_t node;
	struct incstack_tree tree = {0};
	uint64_t totals[4];
	ck_assert_int_eq(incstack_profile_create(&kind, 1, &p), 0);
	ck_assert_int_eq(incstack_profile_add_node(p, 0, &named, &node), 0);
	CHECK_ANSWERS(
		SAYS(INCSTACK_EINVAL, incstack_profile_create(NULL, 1, &other)),
		SAYS(INCSTACK_EINVAL, incstack_profile_create(&kind, 0, &other)),
		SAYS(INCSTACK_EINVAL, incstack_profile_create(&kind, 17, &other)),
		SAYS(INCSTACK_EINVAL, incstack_profile_create(&kind, 1, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_add_tree(NULL, INCSTACK_PROFILE_ROOT, &tree, NULL, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_add_tree(p, INCSTACK_PROFILE_ROOT, NULL, NULL, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_tree(p, 9, &tree, NULL, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 9, &named, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 0, NULL, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 0, &nameless, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 0, &label, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_node(p, 0, &unsized, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_set_meta(p, &meta)),
		SAYS(INCSTACK_EINVAL, incstack_profile_meta(p, &meta)),
		SAYS(INCSTACK_EFORMAT, incstack_profile_add_node(p, 0, &broken, &node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_weights(p, 0, totals)),
		SAYS(INCSTACK_EINVAL, incstack_profile_add_weights(p, 9, totals)),
		SAYS(INCSTACK_EINVAL, incstack_profile_name_frames(p, NULL, NULL, &other)),
		SAYS(INCSTACK_EINVAL, incstack__profile_fold_recursion(p, NULL)),
		SAYS(INCSTACK_EINVAL, incstack__profile_fold_recursion(NULL, &other)),
		SAYS(INCSTACK_EINVAL, incstack_profile_kind(p, 1, &other_kind)),
		SAYS(INCSTACK_EINVAL, incstack_profile_node(NULL, node, &at)),
		SAYS(INCSTACK_EINVAL, incstack_profile_node(p, 9, &at)),
		SAYS(INCSTACK_EINVAL, incstack_profile_node(p, node, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_profile_node(p, node, &unsized_node)),
		SAYS(INCSTACK_EINVAL, incstack_profile_totals(p, 9, totals)),
		SAYS(INCSTACK_EINVAL, incstack_profile_totals(p, 0, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_profile_merge(p, NULL)),
		SAYS(INCSTACK_EINVAL, incstack__profile_average(NULL, 1, &other)),
		SAYS(INCSTACK_EINVAL,
		     incstack__profile_compare(p, p, 9, INCSTACK__MEASURE_SELF, 0, &difference)),
		SAYS(INCSTACK_EINVAL,
		     incstack__profile_compare(p, p, 0, INCSTACK__MEASURE_SELF, 2, &difference)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_read(NULL, INCSTACK_FORMAT_FOLDED, 0, &other, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_read(stdin, INCSTACK_FORMAT_FOLDED, 4, &other, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_read(stdin, INCSTACK_FORMAT_FOLDED, 0, &other, &problem)),
		SAYS(INCSTACK_EINVAL, incstack_profile_write(p, INCSTACK_FORMAT_FOLDED, 0, NULL)),
		SAYS(INCSTACK_EINVAL,
		     incstack_profile_write(p, INCSTACK_FORMAT_FOLDED, 9, stdout)));
	incstack_profile_destroy(p);
	incstack_profile_destroy(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bad input for profiles");
	TCase *tests = tcase_create("is refused");

	tcase_add_test(tests, profile_is_checked);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
