/* SPDX-License-Identifier: MIT
 *
 * Tests that frames get names, files, lines and kinds in one pass, that recursion is folded, and that
 * trees are added below a node.
 */
#include <stdlib.h>
#include <string.h>

#include <incstack/profile.h>

#include "profile_nodes.h"
#include "run_suite.h"
#include "profile/analysis.h"
#include "profile/files.h"
#include "profile/reduce.h"

static const struct incstack_profile_kind kinds[] = {{"samples", "count"}};

enum { FILLED = INCSTACK_OBJECT_FILLED, BASE = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_BASE };

static struct incstack_profile *made(void)
{
	struct incstack_profile *profile = NULL;

	ck_assert_int_eq(incstack_profile_create(kinds, 1, &profile), 0);
	return profile;
}

/* main calls f at position 10 (twice) and at position 20; both are in line 1 of main. */
static void add_calls(struct incstack_profile *profile, const char *below, uint32_t base_flags)
{
	struct incstack_frame_object main10 = {.function = 1, .position = 10, .flags = base_flags};
	struct incstack_frame_object main20 = {.function = 1, .position = 20, .flags = base_flags};
	struct incstack_frame_object f10 = {
		.parent = &main10, .function = 2, .position = 5, .flags = FILLED};
	struct incstack_frame_object f20 = {
		.parent = &main20, .function = 2, .position = 5, .flags = FILLED};
	struct incstack_trace t3 = {.top = &f20};
	struct incstack_trace t2 = {.next = &t3, .top = &f10};
	struct incstack_trace t1 = {.next = &t2, .top = &f10};
	struct incstack_tree tree = {.traces = &t1, .count = 3, .objects = 4};
	uint32_t parent = INCSTACK_PROFILE_ROOT;

	if (below) {
		const struct incstack_profile_frame frame = {
			.size = sizeof(frame), .name = below, .name_length = strlen(below)};

		ck_assert_int_eq(incstack_profile_add_node(profile, parent, &frame, &parent), 0);
	}
	ck_assert_int_eq(incstack_profile_add_tree(profile, parent, &tree, NULL, NULL), 0);
}

static int find(void *context, const struct incstack_profile_frame *frame,
		struct incstack_profile_source *source)
{
	static const char *const names[] = {NULL, "Main.main", "Main.f"};

	if (frame->name) /* a thread's name */
		return 0;
	source->name = names[frame->function];
	source->file = "Main.java";
	source->line = frame->position / 10 == *(const int32_t *)context ? 7 : 1;
	return 0;
}

static void expect_frame(const struct incstack_profile *profile, uint32_t node, const char *name,
			 const char *file, int32_t line)
{
	const struct incstack_profile_frame frame = node_at(profile, node).frame;

	ck_assert_uint_eq(frame.name_length, strlen(name));
	ck_assert_int_eq(strncmp(frame.name, name, frame.name_length), 0);
	ck_assert_pstr_eq(frame.file, file);
	ck_assert_int_eq(frame.line, line);
	ck_assert_int_eq(frame.position, -1);
}

START_TEST(positions_in_one_line_become_one_context)
{
	struct incstack_profile *profile = made(), *named = NULL;
	int32_t none = -9;

	add_calls(profile, NULL, BASE);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 5);
	ck_assert_int_eq(incstack_profile_name_frames(profile, find, &none, &named), 0);
	ck_assert_uint_eq(incstack_profile_nodes(named), 3);
	expect_frame(named, 1, "Main.main", "Main.java", 1);
	expect_frame(named, 2, "Main.f", "Main.java", 1);
	ck_assert_uint_eq(node_at(named, 2).weights[0], 3);
	ck_assert_uint_eq(node_at(named, 1).weights[0], 0);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(other_lines_stay_other_contexts)
{
	struct incstack_profile *profile = made(), *named = NULL;
	int32_t second = 2;

	add_calls(profile, NULL, BASE);
	ck_assert_int_eq(incstack_profile_name_frames(profile, find, &second, &named), 0);
	ck_assert_uint_eq(incstack_profile_nodes(named), 5);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(meta_data_is_kept)
{
	struct incstack_profile *profile = made(), *named = NULL;
	struct incstack_profile_meta meta = {.size = sizeof(meta),
					     .program = "java Main",
					     .mode = "partial",
					     .lost = 4,
					     .truncated = 2};
	int32_t none = -9;

	ck_assert_int_eq(incstack_profile_set_meta(profile, &meta), 0);
	ck_assert_int_eq(incstack_profile_name_frames(profile, find, &none, &named), 0);
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
	ck_assert_int_eq(incstack_profile_name_frames(profile, find, &none, &named), 0);
	ck_assert_uint_eq(incstack_profile_nodes(named), 1 + 3 + 4);
	expect_frame(named, 1, "worker 1", NULL, 0);
	ck_assert_uint_eq(node_at(named, 1).parent, INCSTACK_PROFILE_ROOT);
	ck_assert_uint_eq(node_at(named, 2).parent, 1);
	expect_frame(named, 3, "Main.f", "Main.java", 1);
	ck_assert_uint_eq(node_at(named, 3).weights[0], 6);
	expect_frame(named, 4, "worker 2", NULL, 0);
	expect_frame(named, 5, "[truncated]", NULL, 0);
	ck_assert_uint_eq(node_at(named, 5).parent, 4);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
}
END_TEST

static int by_kind(void *context, const struct incstack_profile_frame *frame,
		   struct incstack_profile_source *source)
{
	(void)context;
	source->name = "f";
	source->line = -3;
	source->kind = frame->function == 1 ? INCSTACK_KIND_INTERPRETED : INCSTACK_KIND_C;
	return 0;
}

START_TEST(frames_get_kinds)
{
	struct incstack_profile *profile = made(), *named = NULL;
	struct incstack_profile_frame frame;

	add_calls(profile, NULL, BASE);
	ck_assert_int_eq(incstack_profile_name_frames(profile, by_kind, NULL, &named), 0);
	ck_assert_uint_eq(incstack_profile_nodes(named), 3);
	frame = node_at(named, 1).frame;
	ck_assert_uint_eq(frame.kind, INCSTACK_KIND_INTERPRETED);
	ck_assert_int_eq(frame.line, 0);
	frame = node_at(named, 2).frame;
	ck_assert_uint_eq(frame.kind, INCSTACK_KIND_C);
	ck_assert_uint_eq(incstack__profile_losses(named, INCSTACK_FORMAT_PPROF, 0),
			  INCSTACK__LOSS_FRAME_KINDS);
	ck_assert_uint_eq(incstack__profile_losses(named, INCSTACK_FORMAT_HTML, 0), 0);
	incstack_profile_destroy(named);
	incstack_profile_destroy(profile);
}
END_TEST

static uint32_t add_named(struct incstack_profile *profile, uint32_t parent, const char *name,
			  int32_t line, uint64_t weight)
{
	const struct incstack_profile_frame frame = {
		.size = sizeof(frame), .name = name, .name_length = strlen(name), .line = line};
	uint32_t node;

	ck_assert_int_eq(incstack_profile_add_node(profile, parent, &frame, &node), 0);
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, &weight), 0);
	return node;
}

/* main calls f, which calls itself from two lines, and g, which calls f again; and h calls main. */
START_TEST(recursion_is_folded)
{
	struct incstack_profile *profile = made(), *folded = NULL;
	uint32_t main_node = add_named(profile, INCSTACK_PROFILE_ROOT, "main", 1, 1);
	uint32_t f = add_named(profile, main_node, "f", 1, 2);
	uint32_t f1 = add_named(profile, f, "f", 1, 4), f2 = add_named(profile, f1, "f", 2, 8);
	uint32_t g = add_named(profile, f2, "g", 1, 16), f3 = add_named(profile, g, "f", 1, 32);
	uint32_t h = add_named(profile, f3, "h", 1, 64);
	struct incstack__profile_function functions[8];
	size_t count = 8;

	add_named(profile, h, "main", 9, 128);
	ck_assert_int_eq(incstack__profile_fold_recursion(profile, &folded), 0);
	ck_assert_uint_eq(incstack_profile_nodes(folded), 5); /* root, main, f, g, h */
	expect_frame(folded, 1, "main", NULL, 1);
	expect_frame(folded, 2, "f", NULL, 1);
	expect_frame(folded, 3, "g", NULL, 1);
	expect_frame(folded, 4, "h", NULL, 1);
	ck_assert_uint_eq(node_at(folded, 3).parent, 2);
	ck_assert_uint_eq(node_at(folded, 4).parent, 2);
	ck_assert_int_eq(incstack__profile_functions(folded, 0, functions, &count), 0);
	ck_assert_uint_eq(count, 4);
	ck_assert_str_eq(functions[0].name, "main");
	ck_assert_uint_eq(functions[0].self, 1 + 128);
	ck_assert_str_eq(functions[1].name, "h");
	ck_assert_uint_eq(functions[1].self, 64);
	ck_assert_str_eq(functions[2].name, "f");
	ck_assert_uint_eq(functions[2].self, 2 + 4 + 8 + 32);
	ck_assert_str_eq(functions[3].name, "g");
	ck_assert_uint_eq(functions[3].self, 16);
	incstack_profile_destroy(folded);
	incstack_profile_destroy(profile);
}
END_TEST

static int unknown_kind(void *context, const struct incstack_profile_frame *frame,
			struct incstack_profile_source *source)
{
	(void)context;
	(void)frame;
	source->kind = 77;
	return 0;
}

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
	int32_t none = -9;

	add_calls(profile, NULL, BASE);
	ck_assert_int_eq(incstack_profile_name_frames(NULL, find, &none, &named), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_name_frames(profile, NULL, &none, &named),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_name_frames(profile, find, &none, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_name_frames(profile, refuse, NULL, &named),
			 INCSTACK_ENOMEM);
	ck_assert_int_eq(incstack_profile_name_frames(profile, broken_name, NULL, &named),
			 INCSTACK_EFORMAT);
	ck_assert_int_eq(incstack_profile_name_frames(profile, unknown_kind, NULL, &named),
			 INCSTACK_EINVAL);
	ck_assert_ptr_null(named);
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
	tcase_add_test(tests, frames_get_kinds);
	tcase_add_test(tests, recursion_is_folded);
	tcase_add_test(tests, bad_arguments_and_names_are_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
