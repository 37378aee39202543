/* SPDX-License-Identifier: MIT
 *
 * Tests folded stacks: the reader returns what was written, and an error names the place of what
 * it refuses.
 */
#include <stdlib.h>
#include <string.h>

#include "profile_files.h"
#include "run_suite.h"

static int read_text(struct incstack_profile **profile, const char *text, size_t length,
		     struct incstack_profile_problem *problem)
{
	return read_bytes(text, length, INCSTACK_FORMAT_FOLDED, profile, problem);
}

static char *written(const struct incstack_profile *profile)
{
	return write_bytes(profile, INCSTACK_FORMAT_FOLDED, 0).at;
}

static void round_trip(const char *text, const char *expected)
{
	struct incstack_profile *profile;
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	char *out;

	ck_assert_int_eq(read_text(&profile, text, strlen(text), &problem), 0);
	ck_assert_ptr_null(problem.why);
	out = written(profile);
	ck_assert_str_eq(out, expected);
	free(out);
	incstack_profile_destroy(profile);
}

START_TEST(equal_stacks_are_summed)
{
	round_trip("a;b 1\na 5\na;b 2\nb;a 4\n", "a 5\na;b 3\nb;a 4\n");
}
END_TEST

START_TEST(names_may_hold_anything_but_separators)
{
	const char *text = "main;std::vector<int, \"x\"> f(char const*, 'y') 7\n"
			   "\xc3\xa9t\xc3\xa9;\xf0\x9f\x94\xa5 12 ;tail  3\n";

	round_trip(text, text);
}
END_TEST

START_TEST(blank_lines_and_carriage_returns_are_no_content)
{
	round_trip("\na;b 1\r\n\r\n", "a;b 1\n");
}
END_TEST

static uint32_t node_of(struct incstack_profile *profile, uint32_t parent, const char *name,
			int32_t line, uint64_t weight)
{
	const struct incstack_profile_frame frame = {
		.size = sizeof(frame), .name = name, .name_length = strlen(name), .line = line};
	uint32_t node = INCSTACK_PROFILE_NONE;

	ck_assert_int_eq(incstack_profile_add_node(profile, parent, &frame, &node), 0);
	ck_assert_int_eq(incstack_profile_add_weights(profile, node, &weight), 0);
	return node;
}

/* They differ in the line of the call, in the line of the top, and in a character that
 * no line can have. */
START_TEST(a_stack_is_written_once)
{
	static const struct incstack_profile_kind kind = {"samples", "count"};
	struct incstack_profile *profile;
	uint32_t main_1, main_2;
	char *text;

	ck_assert_int_eq(incstack_profile_create(&kind, 1, &profile), 0);
	main_1 = node_of(profile, INCSTACK_PROFILE_ROOT, "main", 1, 1);
	ck_assert_uint_eq(node_of(profile, INCSTACK_PROFILE_ROOT, "main", 1, 0), main_1);
	main_2 = node_of(profile, INCSTACK_PROFILE_ROOT, "main", 2, 2);
	ck_assert_uint_ne(main_1, main_2);
	node_of(profile, main_1, "a;b", 1, 10);
	node_of(profile, main_2, "a:b", 1, 20);
	node_of(profile, main_2, "a:b", 2, 40);
	text = written(profile);
	ck_assert_str_eq(text, "main 3\nmain;a:b 70\n");
	free(text);
	incstack_profile_destroy(profile);
}
END_TEST

static void refused(const char *text, size_t length, uint64_t line, uint64_t offset,
		    const char *why)
{
	struct incstack_profile *profile;
	struct incstack_profile_problem problem = {.size = sizeof(problem)};

	ck_assert_int_eq(read_text(&profile, text, length, &problem), INCSTACK_EFORMAT);
	ck_assert_uint_eq(problem.line, line);
	ck_assert_uint_eq(problem.offset, offset);
	ck_assert_ptr_nonnull(problem.why);
	ck_assert_msg(strstr(problem.why, why), "%s", problem.why);
}

#define REFUSED(text, line, offset, why) refused(text, sizeof(text) - 1, line, offset, why)

START_TEST(bad_lines_are_refused_with_their_place)
{
	REFUSED("a 1\nb\n", 2, 4, "no weight");
	REFUSED("a 1\nb;c12\n", 2, 4, "no space");
	REFUSED("12\n", 1, 0, "no space");
	REFUSED(" 12\n", 1, 0, "empty");
	REFUSED("a 1\n\na;;b 3\n", 3, 5, "empty");
	REFUSED("a; 3\n", 1, 0, "empty");
	REFUSED("a 1.5\n", 1, 0, "no space");
	REFUSED("a -1\n", 1, 0, "no space");
	REFUSED("a 9223372036854775808\n", 1, 0, "too large");
	REFUSED("a 99999999999999999999999\n", 1, 0, "too large");
	REFUSED("a 1\nb 12", 2, 4, "cut off");
}
END_TEST

START_TEST(names_that_are_not_text_are_refused)
{
	REFUSED("a\0b 1\n", 1, 0, "UTF-8");
	REFUSED("\x80 1\n", 1, 0, "UTF-8");
	REFUSED("\xc0\xaf 1\n", 1, 0, "UTF-8");
	REFUSED("\xe0\x80\xaf 1\n", 1, 0, "UTF-8");
	REFUSED("\xed\xa0\x80 1\n", 1, 0, "UTF-8");
	REFUSED("\xf4\x90\x80\x80 1\n", 1, 0, "UTF-8");
	REFUSED("\xe2\x82;a 1\n", 1, 0, "UTF-8");
	REFUSED("\xe2 1\n", 1, 0, "UTF-8");
}
END_TEST

START_TEST(lines_have_a_largest_length)
{
	size_t length = INCSTACK_FOLDED_LINE_MAX + (1u << 20);
	char *text = malloc(length);

	ck_assert_ptr_nonnull(text);
	memset(text, 'a', length);
	memcpy(text, "a 1\n", 4);
	refused(text, length, 2, 4, "too long");
	memcpy(text + length - 3, " 1\n", 3);
	refused(text, length, 2, 4, "too long");
	free(text);
}
END_TEST

/* The longest line is read, with or without lines before it, wherever the reads of the file end. */
START_TEST(the_largest_line_is_read)
{
	const size_t before = (size_t)_i, length = before + INCSTACK_FOLDED_LINE_MAX + 1;
	struct incstack_profile *profile;
	struct incstack_profile_problem problem = {.size = sizeof(problem)};
	char *text = malloc(length);

	ck_assert_ptr_nonnull(text);
	memset(text, 'a', length);
	for (size_t i = before + 1000; i < length - 1000; i += 1000)
		text[i] = ';';
	memcpy(text, "b 1\nb 1\n", before);
	memcpy(text + length - 3, " 1\n", 3);
	ck_assert_int_eq(read_text(&profile, text, length, &problem), 0);
	incstack_profile_destroy(profile);
	free(text);
}
END_TEST

START_TEST(a_total_beyond_int64_is_refused)
{
	static const char text[] = "a 9223372036854775807\nb 1\n";
	struct incstack_profile *profile;
	struct incstack_profile_problem problem = {.size = sizeof(problem)};

	ck_assert_int_eq(read_text(&profile, text, sizeof(text) - 1, &problem), INCSTACK_ERANGE);
	ck_assert_uint_eq(problem.line, 2);
}
END_TEST

/* Deep and repetitive, larger than the read buffer: written, read, written. */
START_TEST(generated_profiles_survive)
{
	struct incstack_profile *profile;
	char *text = NULL, *first, *second;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	uint32_t random = 42;

	ck_assert_ptr_nonnull(stream);
	for (int line = 0; line < 4000; line++) {
		for (int depth = 0; depth < 3 + line % 40; depth++) {
			random = random * 1664525u + 1013904223u;
			fprintf(stream, "%sf %u (x)", depth ? ";" : "", (random >> 16) % 3);
		}
		fprintf(stream, " %d\n", line);
	}
	fclose(stream);
	ck_assert_uint_gt(size, 200000);
	ck_assert_int_eq(read_text(&profile, text, size, NULL), 0);
	first = written(profile);
	incstack_profile_destroy(profile);
	ck_assert_int_eq(read_text(&profile, first, strlen(first), NULL), 0);
	second = written(profile);
	ck_assert_str_eq(first, second);
	{
		uint64_t *totals = calloc(incstack_profile_nodes(profile), sizeof(*totals));

		ck_assert_ptr_nonnull(totals);
		ck_assert_int_eq(incstack_profile_totals(profile, 0, totals), 0);
		ck_assert_uint_eq(totals[0], 3999 * 4000 / 2);
		free(totals);
	}
	free(text);
	free(first);
	free(second);
	incstack_profile_destroy(profile);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("folded");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, equal_stacks_are_summed);
	tcase_add_test(tests, a_stack_is_written_once);
	tcase_add_test(tests, names_may_hold_anything_but_separators);
	tcase_add_test(tests, blank_lines_and_carriage_returns_are_no_content);
	tcase_add_test(tests, bad_lines_are_refused_with_their_place);
	tcase_add_test(tests, names_that_are_not_text_are_refused);
	tcase_add_test(tests, lines_have_a_largest_length);
	tcase_add_loop_test(tests, the_largest_line_is_read, 0, 1);
	tcase_add_loop_test(tests, the_largest_line_is_read, 4, 5);
	tcase_add_test(tests, a_total_beyond_int64_is_refused);
	tcase_add_test(tests, generated_profiles_survive);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
