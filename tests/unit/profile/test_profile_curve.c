/* SPDX-License-Identifier: MIT
 *
 * Tests the curve of a heap profile: which is taken, how the page has it, and what becomes of it.
 */
#include "profile_files.h"
#include "profile_nodes.h"
#include "run_suite.h"
#include "profile/cct.h"
#include "profile/reduce.h"

static const uint64_t highest[] = {30, 50, 20};
static const struct incstack__profile_piece pieces[] = {
	{10, 0, 2, 0}, {50, 40, 3, 1}, {5, 5, 2, 0}, {0, 10, 2, 2}};

static struct incstack_profile *made_from(const char *folded)
{
	struct incstack_profile *profile = NULL;
	FILE *stream = fmemopen((void *)(uintptr_t)folded, strlen(folded), "r");

	ck_assert_int_eq(incstack_profile_read(stream, INCSTACK_FORMAT_FOLDED, 0, &profile, NULL),
			 0);
	fclose(stream);
	return profile;
}

/* main > a, b; nodes 1, 2, 3. */
static struct incstack_profile *made(void)
{
	return made_from("main;a 4\nmain;b 5\n");
}

static int set(struct incstack_profile *profile, const struct incstack__profile_piece *list,
	       size_t count)
{
	const struct incstack__profile_curve curve = {.width_ns = 1000,
						      .peak = 50,
						      .peak_ns = 1500,
						      .highest = highest,
						      .moments = 3,
						      .pieces = list,
						      .piece_count = count};

	return incstack__profile_set_curve(profile, &curve);
}

static bool contains(const struct incstack_profile *profile, const char *text)
{
	size_t size;
	char *page = NULL;
	FILE *stream = open_memstream(&page, &size);
	bool found;

	ck_assert_int_eq(incstack_profile_write(profile, INCSTACK_FORMAT_HTML, 0, stream), 0);
	fclose(stream);
	found = strstr(page, text) != NULL;
	free(page);
	return found;
}

START_TEST(what_makes_no_sense_is_refused)
{
	struct incstack_profile *profile = made();
	const struct incstack__profile_piece no_node = {1, 0, 4, 0}, no_moment = {1, 0, 1, 3};
	const struct incstack__profile_curve no_width = {.moments = 3, .highest = highest};

	ck_assert_int_eq(set(profile, &no_node, 1), INCSTACK_EINVAL);
	ck_assert_int_eq(set(profile, &no_moment, 1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_set_curve(profile, &no_width), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_set_curve(profile, NULL), INCSTACK_EINVAL);
	ck_assert_ptr_null(profile->curve);
	incstack_profile_destroy(profile);
}
END_TEST

/* Boxes are all 0, main 1, a 2, b 3. The bytes are 1 box, +2, 15, 5; 1 box, +3, 50, 40; 1 box, +2, 0, 10. */
START_TEST(the_page_has_it)
{
	struct incstack_profile *profile = made();

	ck_assert_int_eq(set(profile, pieces, 4), 0);
	ck_assert(contains(profile, "\"curve\":{\"width\":1000,\"peak\":50,\"peakAt\":1500,"
				    "\"highest\":[30,50,20],\n\"pieces\":\"AQIPBQEDMigBAgAK\"}"));
	ck_assert_int_eq(set(profile, NULL, 0), 0);
	ck_assert(contains(profile, "\"pieces\":null}"));
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(it_moves_with_its_nodes)
{
	static const uint32_t moved[] = {0, 1, 1, INCSTACK_PROFILE_NONE};
	struct incstack_profile *profile = made();

	ck_assert_int_eq(set(profile, pieces, 4), 0);
	incstack__curve_move(profile, moved);
	ck_assert(contains(profile, "\"pieces\":\"AQEPBQABAQAK\"}"));
	ck_assert_int_eq(incstack__profile_prune(profile, 2), 0);
	ck_assert_ptr_null(profile->curve);
	incstack_profile_destroy(profile);
}
END_TEST

/* main > a > a: both a become one, and so do their pieces. */
START_TEST(it_is_folded_with_its_nodes)
{
	struct incstack_profile *profile = made_from("main;a;a 4\nmain;a 5\n"), *folded = NULL;

	ck_assert_int_eq(set(profile, pieces, 4), 0);
	ck_assert_int_eq(incstack__profile_fold_recursion(profile, &folded), 0);
	ck_assert(contains(folded, "\"pieces\":\"AQIPBQECMigBAgAK\"}"));
	incstack_profile_destroy(folded);
	incstack_profile_destroy(profile);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("curve");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, what_makes_no_sense_is_refused);
	tcase_add_test(tests, the_page_has_it);
	tcase_add_test(tests, it_moves_with_its_nodes);
	tcase_add_test(tests, it_is_folded_with_its_nodes);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
