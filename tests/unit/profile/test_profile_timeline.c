/* SPDX-License-Identifier: MIT
 *
 * Tests timelines: which are taken, how the page of the flame graph and Firefox files show them, and
 * when they are dropped.
 */
#include "profile_files.h"
#include "profile_nodes.h"
#include "run_suite.h"
#include "profile/files.h"
#include "profile/reduce.h"
#include "profile/timeline.h"

enum { MS = 1000000 };

static const struct incstack__profile_thread threads[] = {
	{"main", 10}, {"</script>", 11}, {"silent", 12}};

/* main > a, b; nodes 1, 2, 3. */
static struct incstack_profile *made(void)
{
	static const struct incstack_profile_kind kinds[] = {{"time", "nanoseconds"},
							     {"samples", "count"}};
	static const char *const names[] = {"main", "a", "b"};
	const uint64_t weights[] = {10 * MS, 1};
	struct incstack_profile *profile = NULL;
	uint32_t node;

	ck_assert_int_eq(incstack_profile_create(kinds, 2, &profile), 0);
	for (int i = 0; i < 3; i++) {
		const struct incstack_profile_frame frame = {.size = sizeof(frame),
							     .name = names[i],
							     .name_length = strlen(names[i]),
							     .position = -1};

		ck_assert_int_eq(incstack_profile_add_node(profile, i ? 1 : INCSTACK_PROFILE_ROOT,
							   &frame, &node),
				 0);
		ck_assert_int_eq(incstack_profile_add_weights(profile, node, weights), 0);
	}
	return profile;
}

static int set(struct incstack_profile *profile, const struct incstack__profile_sample *samples,
	       size_t count)
{
	const struct incstack__profile_timeline timeline = {threads, samples, 3, count};

	return incstack__profile_set_timeline(profile, &timeline);
}

/* Thread 0 runs from 100 to 110 ms in a and from 390 to 400 ms in main; thread 1 from 249 to 259 ms. */
static struct incstack_profile *timed(void)
{
	static const struct incstack__profile_sample samples[] = {{400 * MS, 10 * MS, 0, 1, 0},
								  {259 * MS, 10 * MS, 1, 3, 0},
								  {110 * MS, 10 * MS, 0, 2, 0}};
	struct incstack_profile *profile = made();

	ck_assert_int_eq(set(profile, samples, 3), 0);
	return profile;
}

static int contains(const struct incstack_profile *profile, enum incstack_profile_format format,
		    const char *text)
{
	struct bytes bytes = write_bytes(profile, format, 0);
	const int found = memmem(bytes.at, bytes.size, text, strlen(text)) != NULL;

	free(bytes.at);
	return found;
}

START_TEST(what_makes_no_sense_is_refused)
{
	static const struct incstack__profile_sample wrong[] = {{1, 1, 3, 1, 0},
								{1, 1, 0, 4, 0},
								{1, 1, 0, INCSTACK_PROFILE_ROOT, 0},
								{1, 1, 0, 1, 9}};
	static const struct incstack__profile_thread bad[] = {{"\xff", 1}, {NULL, 2}};
	const struct incstack__profile_timeline not_utf8 = {bad, NULL, 1, 0};
	const struct incstack__profile_timeline no_name = {bad, NULL, 2, 0};
	const struct incstack__profile_timeline no_threads = {NULL, NULL, 1, 0};
	struct incstack_profile *profile = timed();

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(set(profile, &wrong[i], 1), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_set_timeline(profile, &not_utf8), INCSTACK_EFORMAT);
	ck_assert_int_eq(incstack__profile_set_timeline(profile, &no_name), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_set_timeline(profile, &no_threads), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack__profile_set_timeline(NULL, NULL), INCSTACK_EINVAL);
	/* The earlier one stays. */
	ck_assert(contains(profile, INCSTACK_FORMAT_HTML, "\"timeline\""));
	ck_assert_int_eq(incstack__profile_set_timeline(profile, NULL), 0);
	ck_assert(!contains(profile, INCSTACK_FORMAT_HTML, "\"timeline\":"));
	incstack_profile_destroy(profile);
}
END_TEST

/* Returns bar i of the row that begins so. */
static uint64_t bar(const char *page, const char *row, int i)
{
	const char *at = strstr(page, row);

	ck_assert_ptr_nonnull(at);
	for (at += strlen(row); i > 0; i--)
		at = strchr(at, ',') + 1;
	return strtoull(at, NULL, 10);
}

/* 300 ms in 300 bars, from 100 ms on. */
START_TEST(a_weight_is_spread_over_the_time_before_its_sample)
{
	struct incstack_profile *profile = timed();
	struct bytes page = write_bytes(profile, INCSTACK_FORMAT_HTML, 0);
	static const char first[] = "[\"main\",10,20000000,[";
	static const char second[] = "[\"\\u003c/script>\",11,10000000,[";

	ck_assert_ptr_nonnull(strstr(page.at, "\"timeline\":{\"width\":1000000,\"others\":0,"));
	ck_assert_uint_eq(bar(page.at, first, 0), MS);
	ck_assert_uint_eq(bar(page.at, first, 9), MS);
	ck_assert_uint_eq(bar(page.at, first, 10), 0);
	ck_assert_uint_eq(bar(page.at, first, 289), 0);
	ck_assert_uint_eq(bar(page.at, first, 290), MS);
	ck_assert_uint_eq(bar(page.at, first, 299), MS);
	ck_assert_uint_eq(bar(page.at, second, 148), 0);
	ck_assert_uint_eq(bar(page.at, second, 149), MS);
	ck_assert_ptr_null(strstr(page.at, "silent"));
	free(page.at);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(threads_without_a_row_share_one)
{
	enum { MANY = 100 };
	static struct incstack__profile_thread many[MANY];
	static struct incstack__profile_sample samples[MANY];
	const struct incstack__profile_timeline timeline = {many, samples, MANY, MANY};
	struct incstack_profile *profile = made();
	struct bytes page;

	for (uint32_t i = 0; i < MANY; i++) {
		many[i].name = "t";
		samples[i] = (struct incstack__profile_sample){
			.time_ns = 1000, .weight = i < 40 ? 1 : 2, .thread = i, .node = 1};
	}
	ck_assert_int_eq(incstack__profile_set_timeline(profile, &timeline), 0);
	page = write_bytes(profile, INCSTACK_FORMAT_HTML, 0);
	ck_assert_ptr_nonnull(strstr(page.at, "\"others\":40,"));
	ck_assert_ptr_nonnull(strstr(page.at, "\n[null,0,40,["));
	free(page.at);
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(firefox_files_have_threads_and_times)
{
	struct incstack_profile *profile = timed(), *back = NULL;
	struct bytes file = write_bytes(profile, INCSTACK_FORMAT_FIREFOX, 0);
	struct incstack_profile_kind kind;
	const char *at = strstr(file.at, "{\"name\":\"main\"");

	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_nonnull(strstr(at, "\"tid\":10,"));
	/* Its own tables: main, then a; first the sample in a. */
	ck_assert_ptr_nonnull(strstr(at, "\"stack\":[1,0],\"weight\":[10,10],"
					 "\"time\":[0.000000,290.000000]"));
	ck_assert_ptr_nonnull(strstr(at, "\"prefix\":[null,0]"));
	at = strstr(file.at, "{\"name\":\"\\u003c/script>\"");
	ck_assert_ptr_nonnull(at);
	ck_assert_ptr_nonnull(strstr(at, "\"time\":[149.000000]"));
	ck_assert_ptr_nonnull(strstr(at, "\"stringArray\":[\"main\",\"b\"]"));
	ck_assert_ptr_null(strstr(file.at, "silent"));
	ck_assert_uint_eq(incstack__profile_losses(profile, INCSTACK_FORMAT_FIREFOX, 0),
			  INCSTACK__LOSS_KINDS);
	/* The threads are one kind again. */
	ck_assert_int_eq(read_bytes(file.at, file.size, INCSTACK_FORMAT_FIREFOX, &back, NULL), 0);
	ck_assert_uint_eq(count_kinds(back), 1);
	ck_assert_int_eq(incstack_profile_kind(back, 0, &kind), 0);
	ck_assert_str_eq(kind.name, "time");
	ck_assert_uint_eq(node_at(back, 1).weights[0], 10 * MS);
	ck_assert(incstack__profile_losses(back, INCSTACK_FORMAT_FIREFOX, 0) &
		  INCSTACK__LOSS_THREADS);
	free(file.at);
	incstack_profile_destroy(profile);
	incstack_profile_destroy(back);
}
END_TEST

START_TEST(files_and_lines_are_in_the_tables_of_a_thread)
{
	static const struct incstack_profile_frame frame = {
		.size = sizeof(frame), .name = "f", .name_length = 1, .file = "f.c", .line = 42};
	struct incstack_profile *profile = made();
	struct incstack__profile_sample sample = {1000, 1, 0, 0, 0};

	ck_assert_int_eq(incstack_profile_add_node(profile, 1, &frame, &sample.node), 0);
	ck_assert_int_eq(set(profile, &sample, 1), 0);
	ck_assert(contains(profile, INCSTACK_FORMAT_FIREFOX, "\"fileName\":[null,2]"));
	ck_assert(contains(profile, INCSTACK_FORMAT_FIREFOX, "[\"main\",\"f\",\"f.c\"]"));
	ck_assert(contains(profile, INCSTACK_FORMAT_FIREFOX, "\"line\":[null,42]"));
	incstack_profile_destroy(profile);
}
END_TEST

START_TEST(it_is_dropped_when_nodes_are_removed)
{
	struct incstack_profile *pruned = timed(), *cleared = timed();

	ck_assert_int_eq(incstack__profile_prune(pruned, 2), 0);
	ck_assert(!contains(pruned, INCSTACK_FORMAT_HTML, "\"timeline\":"));
	ck_assert_int_eq(incstack__profile_clear(cleared), 0);
	ck_assert(!contains(cleared, INCSTACK_FORMAT_HTML, "\"timeline\":"));
	incstack_profile_destroy(pruned);
	incstack_profile_destroy(cleared);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("timeline");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, what_makes_no_sense_is_refused);
	tcase_add_test(tests, a_weight_is_spread_over_the_time_before_its_sample);
	tcase_add_test(tests, threads_without_a_row_share_one);
	tcase_add_test(tests, firefox_files_have_threads_and_times);
	tcase_add_test(tests, files_and_lines_are_in_the_tables_of_a_thread);
	tcase_add_test(tests, it_is_dropped_when_nodes_are_removed);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
