/* SPDX-License-Identifier: MIT
 *
 * Walks and trees become one profile; what is counted on the way; what happens without memory.
 * In this program the Nth allocation fails (linked with --wrap).
 */
#include <stdlib.h>
#include <string.h>

#include "run_suite.h"
#include "collector.h"

enum { FILLED = INCSTACK_OBJECT_FILLED, BASE = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_BASE };

static long until_failure = -1; /* allocations; below 0: none fails */

static bool fails(void)
{
	return until_failure >= 0 && until_failure-- == 0;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : __real_malloc(bytes);
}

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails() ? NULL : __real_calloc(count, bytes);
}

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes)
{
	return fails() ? NULL : __real_realloc(memory, bytes);
}

/* Innermost first. */
static const struct agent_frame fgm[] = {{3, 5}, {2, 9}, {1, 7}};
static const struct agent_frame hgm[] = {{4, 5}, {2, 9}, {1, 7}};
static const struct agent_frame gm[] = {{2, 8}, {1, 7}};

static uint64_t samples(const struct incstack_profile *profile)
{
	uint64_t *totals = calloc(incstack_profile_nodes(profile), sizeof(*totals));
	uint64_t all;

	ck_assert_int_eq(incstack_profile_totals(profile, 0, totals), 0);
	all = totals[0];
	free(totals);
	return all;
}

START_TEST(walks_are_counted_and_compared_with_the_last_of_their_thread)
{
	struct agent_collector collector;
	struct agent_last_walk a = {0}, b = {0};
	struct agent_counts counts;
	struct incstack_profile *profile;

	ck_assert(agent_collector_open(&collector));
	agent_collector_walk(&collector, NULL, fgm, 3, false, &a);
	agent_collector_walk(&collector, NULL, gm, 2, false, &b);
	agent_collector_walk(&collector, NULL, hgm, 3, false, &a); /* pops f */
	agent_collector_walk(&collector, NULL, gm, 2, false, &a);  /* pops h and g, at bci 9 */
	agent_collector_walk(&collector, NULL, fgm, 2, true, &b);  /* truncated: pops all */
	agent_collector_lose(&collector, 4);
	profile = agent_collector_take(&collector, true, &counts);
	ck_assert_uint_eq(counts.traces, 5);
	ck_assert_uint_eq(counts.truncated, 1);
	ck_assert_uint_eq(counts.lost, 4);
	ck_assert_uint_eq(counts.depth_sum, 3 + 2 + 3 + 2 + 2);
	ck_assert_uint_eq(counts.popped_count, 3);
	ck_assert_uint_eq(counts.popped_sum, 1 + 2 + 2);
	ck_assert_uint_eq(samples(profile), 5);
	/* m; g at 9 with f and h; g at 8; [truncated] with g and f */
	ck_assert_uint_eq(incstack_profile_nodes(profile), 1 + 1 + 3 + 1 + 3);
	incstack_profile_destroy(profile);
	agent_last_walk_free(&a);
	agent_last_walk_free(&b);
	agent_collector_close(&collector);
}
END_TEST

START_TEST(trees_are_counted_by_what_they_share)
{
	struct incstack_frame_object m = {.method = 1, .address = 90, .flags = BASE};
	struct incstack_frame_object g = {
		.parent = &m, .method = 2, .address = 80, .flags = FILLED};
	struct incstack_frame_object inlined = {
		.parent = &g, .method = 5, .address = 80, .flags = FILLED};
	struct incstack_frame_object f = {
		.parent = &inlined, .method = 3, .address = 70, .flags = FILLED};
	struct incstack_frame_object h = {
		.parent = &g, .method = 4, .address = 70, .flags = FILLED};
	struct incstack_trace t3 = {.top = &m};
	struct incstack_trace t2 = {.next = &t3, .top = &h};
	struct incstack_trace t1 = {.next = &t2, .top = &f};
	struct incstack_tree tree = {.traces = &t1, .count = 3, .objects = 5, .truncated = 0};
	struct agent_collector collector;
	struct agent_counts counts;
	struct incstack_profile *profile;

	ck_assert(agent_collector_open(&collector));
	agent_collector_tree(&collector, "thread", &tree);
	profile = agent_collector_take(&collector, true, &counts);
	ck_assert_uint_eq(counts.traces, 3);
	ck_assert_uint_eq(counts.depth_sum, 4 + 3 + 1);
	ck_assert_uint_eq(counts.popped_count, 2);
	ck_assert_uint_eq(counts.popped_sum, 2 + 2);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 1 + 1 + 5);
	incstack_profile_destroy(profile);
	agent_collector_close(&collector);
}
END_TEST

static int count_nodes(void *context, const struct incstack_profile *profile,
		       const struct agent_counts *counts)
{
	*(uint64_t *)context = counts->traces;
	return (int)incstack_profile_nodes(profile);
}

START_TEST(parts_begin_anew_and_the_last_ends_all)
{
	struct agent_collector collector;
	struct agent_counts counts;
	struct incstack_profile *profile;
	uint64_t traces = 0;

	ck_assert(agent_collector_open(&collector));
	agent_collector_walk(&collector, NULL, fgm, 3, false, NULL);
	ck_assert_int_eq(agent_collector_read(&collector, count_nodes, &traces), 4);
	ck_assert_uint_eq(traces, 1);
	profile = agent_collector_take(&collector, false, &counts);
	ck_assert_uint_eq(samples(profile), 1);
	incstack_profile_destroy(profile);
	agent_collector_walk(&collector, NULL, gm, 2, false, NULL);
	profile = agent_collector_take(&collector, true, &counts);
	ck_assert_uint_eq(counts.traces, 1);
	ck_assert_uint_eq(incstack_profile_nodes(profile), 3);
	incstack_profile_destroy(profile);
	agent_collector_walk(&collector, NULL, gm, 2, false, NULL); /* too late: lost */
	ck_assert_int_eq(agent_collector_read(&collector, count_nodes, &traces), INCSTACK_EINVAL);
	ck_assert_ptr_null(agent_collector_take(&collector, true, &counts));
	ck_assert_uint_eq(counts.lost, 1);
	agent_collector_close(&collector);
}
END_TEST

/* Whatever allocation fails: each walk is in the profile or lost, and all goes on. */
START_TEST(without_memory_samples_are_lost_and_counted)
{
	bool lost_some = false;

	for (long n = 0; n < 60; n++) {
		struct agent_collector collector;
		struct agent_last_walk last = {0};
		struct agent_counts counts;
		struct incstack_profile *profile;
		struct agent_frame frames[300];

		ck_assert(agent_collector_open(&collector));
		for (uint32_t i = 0; i < 300; i++)
			frames[i] = (struct agent_frame){.method = 300 - i, .bci = 1};
		until_failure = n;
		for (uint32_t i = 1; i <= 300; i += 20)
			agent_collector_walk(&collector, i % 40 == 1 ? "t" : NULL, frames + 300 - i,
					     i, false, &last);
		until_failure = -1;
		agent_collector_walk(&collector, NULL, frames, 300, false, &last);
		profile = agent_collector_take(&collector, true, &counts);
		ck_assert_uint_eq(counts.traces + counts.lost, 16);
		ck_assert_uint_le(counts.lost, 1);
		ck_assert_uint_eq(samples(profile), counts.traces);
		lost_some = lost_some || counts.lost;
		incstack_profile_destroy(profile);
		agent_last_walk_free(&last);
		agent_collector_close(&collector);
	}
	ck_assert(lost_some);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("collector");
	Suite *suite = suite_create("agent");

	tcase_add_test(tests, walks_are_counted_and_compared_with_the_last_of_their_thread);
	tcase_add_test(tests, trees_are_counted_by_what_they_share);
	tcase_add_test(tests, parts_begin_anew_and_the_last_ends_all);
	tcase_add_test(tests, without_memory_samples_are_lost_and_counted);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
