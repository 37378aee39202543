/* SPDX-License-Identifier: MIT
 *
 * Tests that profiles of methods become profiles of the source, and that trees are added below a
 * name.
 */
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "run_suite.h"

static const struct incstack_profile_kind kinds[] = {{"samples", "count"}};

enum { FILLED = INCSTACK_OBJECT_FILLED, BASE = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_BASE };

static struct incstack_profile *made(void)
{
	struct incstack_profile *profile = NULL;

	ck_assert_int_eq(incstack_profile_create(kinds, 1, &profile), 0);
	return profile;
}

/* main calls f at bci 10 (twice) and at bci 20; both are in line 1 of main. */
static void add_calls(struct incstack_profile *profile, const char *below, uint32_t base_flags)
{
	struct incstack_frame_object main10 = {.method = 1, .bci = 10, .flags = base_flags};
	struct incstack_frame_object main20 = {.method = 1, .bci = 20, .flags = base_flags};
	struct incstack_frame_object f10 = {
		.parent = &main10, .method = 2, .bci = 5, .flags = FILLED};
	struct incstack_frame_object f20 = {
		.parent = &main20, .method = 2, .bci = 5, .flags = FILLED};
	struct incstack_trace t3 = {.top = &f20};
	struct incstack_trace t2 = {.next = &t3, .top = &f10};
	struct incstack_trace t1 = {.next = &t2, .top = &f10};
	struct incstack_tree tree = {.traces = &t1, .count = 3, .objects = 4};

	if (below)
		ck_assert_int_eq(incstack_profile_add_tree_below(profile, below, &tree, NULL, NULL),
				 0);
	else
		ck_assert_int_eq(incstack_profile_add_tree(profile, &tree, NULL, NULL), 0);
}

static int find(void *context, const struct incstack_profile_frame *frame,
		struct incstack_profile_source *source)
{
	static const char *const names[] = {NULL, "Main.main", "Main.f"};

	if (frame->name) /* a thread's name, not a method */
		return 0;
	source->name = names[frame->method];
	source->file = "Main.java";
	source->line = frame->bci / 10 == *(const int32_t *)context ? 7 : 1;
	return 0;
}

static void expect_frame(const struct incstack_profile *profile, uint32_t node, const char *name,
			 const char *file, int32_t line)
{
	struct incstack_profile_frame frame;

	ck_assert_int_eq(incstack_profile_frame(profile, node, &frame), 0);
	ck_assert_uint_eq(frame.name_length, strlen(name));
	ck_assert_int_eq(strncmp(frame.name, name, frame.name_length), 0);
	ck_assert_pstr_eq(frame.file, file);
	ck_assert_int_eq(frame.bci, line);
}

START_TEST(positions_in_one_line_become_one_context)
{
	struct incstack_profile *profile = made(), *named = NULL;
	int32_t none = -9;

	add_calls(profile, NULL, BASE);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 5);
	ck_assert_int_eq(incstack_profile_in_source(profile, find, &none, &named), 0);
	ck_assert_uint_eq(incstack_profile_nodes(named), 3);
	expect_frame(named, 1, "Main.main", "Main.java", 1);
	expect_frame(named, 2, "Main.f", "Main.java", 1);
	ck_assert_uint_eq(incstack_profile_self(named, 2, 0), 3);
	ck_assert_uint_eq(incstack_profile_self(named, 1, 0), 0);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(other_lines_stay_other_contexts)
{
	struct incstack_profile *profile = made(), *named = NULL;
	int32_t second = 2;

	add_calls(profile, NULL, BASE);
	ck_assert_int_eq(incstack_profile_in_source(profile, find, &second, &named), 0);
	ck_assert_uint_eq(incstack_profile_nodes(named), 5);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(meta_data_is_kept)
{
	struct incstack_profile *profile = made(), *named = NULL;
	struct incstack_profile_meta meta = {
		.program = "java Main", .mode = "partial", .lost = 4, .truncated = 2};
	int32_t none = -9;

	ck_assert_int_eq(incstack_profile_set_meta(profile, &meta), 0);
	ck_assert_int_eq(incstack_profile_in_source(profile, find, &none, &named), 0);
	ck_assert_int_eq(incstack_profile_meta(named, &meta), 0);
	ck_assert_str_eq(meta.program, "java Main");
	ck_assert_str_eq(meta.mode, "partial");
	ck_assert_uint_eq(meta.lost, 4);
	ck_assert_uint_eq(meta.truncated, 2);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(trees_of_threads_lie_below_their_names)
{
	struct incstack_profile *profile = made(), *named = NULL;
	int32_t none = -9;

	add_calls(profile, "worker 1", BASE);
	add_calls(profile, "worker 2", FILLED); /* no base: truncated */
	add_calls(profile, "worker 1", BASE);
	ck_assert_int_eq(incstack_profile_in_source(profile, find, &none, &named), 0);
	ck_assert_uint_eq(incstack_profile_nodes(named), 1 + 3 + 4);
	expect_frame(named, 1, "worker 1", NULL, -1);
	ck_assert_uint_eq(incstack_profile_parent(named, 1), INCSTACK_PROFILE_ROOT);
	ck_assert_uint_eq(incstack_profile_parent(named, 2), 1);
	expect_frame(named, 3, "Main.f", "Main.java", 1);
	ck_assert_uint_eq(incstack_profile_self(named, 3, 0), 6);
	expect_frame(named, 4, "worker 2", NULL, -1);
	expect_frame(named, 5, "[truncated]", NULL, -1);
	ck_assert_uint_eq(incstack_profile_parent(named, 5), 4);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
}
END_TEST

static int refuse(void *context, const struct incstack_profile_frame *frame,
		  struct incstack_profile_source *source)
{
	(void)context;
	(void)frame;
	(void)source;
	return INCSTACK_ENOMEM;
}

static int broken_name(void *context, const struct incstack_profile_frame *frame,
		       struct incstack_profile_source *source)
{
	(void)context;
	(void)frame;
	source->name = "\xff";
	return 0;
}

START_TEST(bad_arguments_and_names_are_refused)
{
	struct incstack_profile *profile = made(), *named = NULL;
	const struct incstack_tree empty = {0};
	int32_t none = -9;

	add_calls(profile, NULL, BASE);
	ck_assert_int_eq(incstack_profile_in_source(NULL, find, &none, &named), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_in_source(profile, NULL, &none, &named), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_in_source(profile, find, &none, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_in_source(profile, refuse, NULL, &named),
			 INCSTACK_ENOMEM);
	ck_assert_int_eq(incstack_profile_in_source(profile, broken_name, NULL, &named),
			 INCSTACK_EFORMAT);
	ck_assert_ptr_null(named);
	ck_assert_int_eq(incstack_profile_add_tree_below(profile, NULL, &empty, NULL, NULL),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_add_tree_below(profile, "", &empty, NULL, NULL),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_add_tree_below(profile, "\xff", &empty, NULL, NULL),
			 INCSTACK_EFORMAT);
	incstack_profile_destroy(profile);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("source");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, positions_in_one_line_become_one_context);
	tcase_add_test(tests, other_lines_stay_other_contexts);
	tcase_add_test(tests, meta_data_is_kept);
	tcase_add_test(tests, trees_of_threads_lie_below_their_names);
	tcase_add_test(tests, bad_arguments_and_names_are_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
