/* SPDX-License-Identifier: MIT
 *
 * How samples are split between running and waiting threads.
 */
#include "../split.h"

#include "run_suite.h"

START_TEST(shares_are_proportional_and_nobody_is_left_out)
{
	for (uint32_t running = 0; running < 12; running++)
		for (uint32_t waiting = 0; waiting < 12; waiting++)
			for (uint32_t n = 0; n < 30; n++) {
				const uint32_t all = running + waiting, m = n < all ? n : all;
				uint32_t r, w;
				incstack__split_for_both(running, waiting, n, &r, &w);
				ck_assert(r <= running && w <= waiting && r + w == m);
				if (m >= 2)
					ck_assert((r || !running) && (w || !waiting));
				/* Off by a half at most, or by one where a group would get nothing. */
				const int64_t off = 2 * ((int64_t)w * all - (int64_t)m * waiting);
				const int64_t most = r == 1 || w == 1 ? 2 * all : all;
				ck_assert(-most <= off && off <= most);
			}
}
END_TEST

START_TEST(many_threads)
{
	const uint32_t most = INT32_MAX;
	uint32_t r, w;
	incstack__split_for_both(15, 6, 4, &r, &w); /* ICPE'15 */
	ck_assert(r == 3 && w == 1);
	incstack__split_for_both(1, 1, 1, &r, &w); /* a half goes to the waiting threads */
	ck_assert(r == 0 && w == 1);
	incstack__split_for_both(1, most - 1, most, &r, &w);
	ck_assert(r == 1 && w == most - 1);
	incstack__split_for_both(most, most, most, &r, &w);
	ck_assert(r == most / 2 && w == most / 2 + 1);
	incstack__split_for_both(most, most, UINT32_MAX, &r, &w);
	ck_assert(r == most && w == most);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("split");
	TCase *tc = tcase_create("split");
	tcase_add_test(tc, shares_are_proportional_and_nobody_is_left_out);
	tcase_add_test(tc, many_threads);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
