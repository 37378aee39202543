/* SPDX-License-Identifier: MIT
 *
 * Tests the shortening of folded stacks to a number of bytes.
 */
#include <stdlib.h>

#include "tool/report/folded_fit.c"
#include "profile_files.h"
#include "run_suite.h"

/* 100 functions under 10 others; the first weigh most. */
static struct incstack_profile *example(void)
{
	char text[1 << 14];
	size_t used = 0;

	for (unsigned i = 0; i < 10; i++)
		for (unsigned j = 0; j < 100; j++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "m%u;f%u %u\n",
						 i, j, j == 0 ? 1000u - i : 1u);
	return profile_from(text);
}

static size_t bytes_written(const struct incstack_profile *profile)
{
	const struct bytes text = write_bytes(profile, INCSTACK_FORMAT_FOLDED, 0);

	free(text.at);
	return text.size;
}

static uint64_t pruned(const struct incstack_profile *profile)
{
	struct incstack_profile_meta meta = {.size = sizeof(meta)};

	ck_assert_int_eq(incstack_profile_meta(profile, &meta), 0);
	return meta.pruned;
}

START_TEST(the_size_is_foreseen_exactly)
{
	struct incstack_profile *profile = example();

	ck_assert_uint_eq(folded_bytes(profile, 0), bytes_written(profile));
	ck_assert_int_eq(tool_folded_fit(profile, 0, bytes_written(profile)), 0);
	ck_assert_uint_eq(pruned(profile), 0);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(small_contexts_go_first_and_no_weight_is_lost)
{
	struct incstack_profile *profile = example();
	uint64_t before, after = 0;
	uint64_t *totals;

	totals = calloc(incstack_profile_nodes(profile), sizeof(*totals));
	ck_assert_int_eq(incstack_profile_totals(profile, 0, totals), 0);
	before = totals[0];
	ck_assert_int_eq(tool_folded_fit(profile, 0, bytes_written(profile) - 1), 0);
	ck_assert_uint_eq(bytes_written(profile),
			  sizeof("m0;[smaller contexts] 99\nm0;f0 1000\n") - 1 +
				  9 * (sizeof("m1;[smaller contexts] 99\nm1;f0 999\n") - 1));
	ck_assert_uint_eq(pruned(profile), 990);
	ck_assert_int_eq(incstack_profile_totals(profile, 0, totals), 0);
	after = totals[0];
	ck_assert_uint_eq(after, before);
	free(totals);
	incstack_profile_destroy(profile);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("fit");
	Suite *suite = suite_create("folded");

	tcase_add_test(tests, the_size_is_foreseen_exactly);
	tcase_add_test(tests, small_contexts_go_first_and_no_weight_is_lost);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
