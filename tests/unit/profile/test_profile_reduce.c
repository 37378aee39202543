/* SPDX-License-Identifier: MIT
 *
 * Tests what makes a profile smaller: prune and shrink.
 */
#include "profile/reduce.h"
#include "profile_files.h"
#include "run_suite.h"

static void folds_to(const struct incstack_profile *profile, const char *expected)
{
	char *folded = folded_text(profile, 0);

	ck_assert_str_eq(folded, expected);
	free(folded);
}

START_TEST(pruning_keeps_totals_and_counts)
{
	struct incstack_profile *profile = profile_from("m;a;x 90\nm;a;y 4\nm;b;z 5\nm 1\n");
	struct incstack_profile_meta meta = {.size = sizeof(meta)};

	ck_assert_int_eq(incstack__profile_prune(profile, 0), INCSTACK_EINVAL);
	/* No function's own weight changes. What was pruned stays one node for each caller. */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(incstack__profile_prune(profile, 10), 0);
		folds_to(profile, "m 1\nm;[smaller contexts] 5\nm;a;[smaller contexts] 4\n"
				  "m;a;x 90\n");
		ck_assert_int_eq(incstack_profile_meta(profile, &meta), 0);
		ck_assert_uint_eq(meta.pruned, 3);
	}
	ck_assert_int_eq(incstack__profile_prune(profile, 1), 0);
	folds_to(profile, "m 1\nm;[smaller contexts] 99\n");
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(a_profile_shrinks_to_what_is_heavy)
{
	struct incstack_profile *profile =
		profile_from("m;a;x 90\nm;a;y 4\nm;a;z 3\nm;b;z 5\nm;b;y;q 1\nm 1\n");

	ck_assert_int_eq(incstack__profile_shrink(profile, 2), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_shrink(NULL, 3), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_shrink(profile, 10), 0);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 10); /* it is small enough */
	ck_assert_int_eq(incstack__profile_shrink(profile, 8), 0);
	folds_to(profile, "m 1\nm;[smaller contexts] 6\nm;a;[smaller contexts] 7\nm;a;x 90\n");
	ck_assert_int_eq(incstack__profile_shrink(profile, 3), 0);
	folds_to(profile, "[smaller contexts] 104\n");
	incstack_profile_destroy(profile);
}
END_TEST

/* The heaviest contexts are too many: the first ones stay. Once it is replaced, a context may come again. */
START_TEST(a_profile_shrinks_though_all_is_heavy)
{
	struct incstack_profile *profile = profile_from("m;a;b;c;d;e;f;g;h;i 3\n");
	const struct incstack_profile_frame a = {
		.size = sizeof(a), .name = "a", .name_length = 1, .position = -1};
	const uint64_t two[] = {2};
	uint32_t node;

	ck_assert_int_eq(incstack__profile_shrink(profile, 5), 0);
	folds_to(profile, "m;[smaller contexts] 3\n");
	ck_assert_int_eq(incstack_profile_add_node(profile, 1, &a, &node), 0);
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, two), 0);
	ck_assert_int_eq(incstack__profile_shrink(profile, 3), 0);
	folds_to(profile, "[smaller contexts] 5\n");
	incstack_profile_destroy(profile);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("reduce");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, pruning_keeps_totals_and_counts);
	tcase_add_test(tests, a_profile_shrinks_to_what_is_heavy);
	tcase_add_test(tests, a_profile_shrinks_though_all_is_heavy);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
