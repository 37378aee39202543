/* SPDX-License-Identifier: MIT
 *
 * Walks and trees become one profile; what is counted on the way; what happens without memory.
 */
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "run_suite.h"
#include "collector.h"

#define MEMORY (UINT64_C(64) << 20)

enum { FILLED = INCSTACK_OBJECT_FILLED, BASE = INCSTACK_OBJECT_FILLED | INCSTACK_OBJECT_BASE };

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

	ck_assert(agent_collector_open(&collector, MEMORY));
	agent_collector_walk(&collector, NULL, fgm, 3, false, &a);
	agent_collector_walk(&collector, NULL, gm, 2, false, &b);
	agent_collector_walk(&collector, NULL, hgm, 3, false, &a); /* pops f */
	agent_collector_walk(&collector, NULL, gm, 2, false, &a);  /* pops h and g, at bci 9 */
	agent_collector_walk(&collector, NULL, fgm, 2, true, &b);  /* truncated: pops all */
	agent_collector_lose(&collector, AGENT_LOSS_LATE, 4);
	agent_collector_lose(&collector, AGENT_LOSS_CLOSED, 1);
	profile = agent_collector_take(&collector, true, &counts);
	ck_assert_uint_eq(counts.traces, 5);
	ck_assert_uint_eq(counts.truncated, 1);
	ck_assert_uint_eq(counts.lost[AGENT_LOSS_LATE], 4);
	ck_assert_uint_eq(counts.lost[AGENT_LOSS_CLOSED], 1);
	ck_assert_uint_eq(agent_counts_lost(&counts), 5);
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
	struct incstack_frame_object m = {.function = 1, .address = 90, .flags = BASE};
	struct incstack_frame_object g = {
		.parent = &m, .function = 2, .address = 80, .flags = FILLED};
	struct incstack_frame_object inlined = {
		.parent = &g, .function = 5, .address = 80, .flags = FILLED};
	struct incstack_frame_object f = {
		.parent = &inlined, .function = 3, .address = 70, .flags = FILLED};
	struct incstack_frame_object h = {
		.parent = &g, .function = 4, .address = 70, .flags = FILLED};
	struct incstack_trace t3 = {.top = &m};
	struct incstack_trace t2 = {.next = &t3, .top = &h};
	struct incstack_trace t1 = {.next = &t2, .top = &f};
	struct incstack_tree tree = {.traces = &t1, .count = 3, .objects = 5, .truncated = 0};
	struct agent_collector collector;
	struct agent_counts counts;
	struct incstack_profile *profile;

	ck_assert(agent_collector_open(&collector, MEMORY));
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

	ck_assert(agent_collector_open(&collector, MEMORY));
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
	ck_assert_uint_eq(counts.lost[AGENT_LOSS_MEMORY], 1);
	agent_collector_close(&collector);
}
END_TEST

static int lose_more(void *context, const struct incstack_profile *profile,
		     const struct agent_counts *counts)
{
	(void)profile;
	ck_assert_uint_eq(counts->lost[AGENT_LOSS_LATE], 2);
	agent_collector_lose(context, AGENT_LOSS_LATE, 3);
	return 0;
}

START_TEST(losses_are_counted_while_the_profile_is_in_use)
{
	struct agent_collector collector;
	struct agent_counts counts;
	struct incstack_profile *profile;

	ck_assert(agent_collector_open(&collector, MEMORY));
	agent_collector_lose(&collector, AGENT_LOSS_LATE, 2);
	ck_assert_int_eq(agent_collector_read(&collector, lose_more, &collector), 0);
	profile = agent_collector_take(&collector, false, &counts);
	ck_assert_uint_eq(counts.lost[AGENT_LOSS_LATE], 5);
	incstack_profile_destroy(profile);
	profile = agent_collector_take(&collector, true, &counts);
	ck_assert_uint_eq(agent_counts_lost(&counts), 0);
	incstack_profile_destroy(profile);
	agent_collector_close(&collector);
}
END_TEST

/* ---- little memory ------------------------------------------------------------------ */

/* Nothing may be missing, and nothing may weigh more than it does. */
START_TEST(a_profile_that_grows_beyond_its_memory_is_pruned)
{
	enum { DIFFERENT = 20000, STEADY = 5000 };
	struct agent_collector collector;
	struct agent_counts counts;
	struct incstack_profile *profile;
	uint64_t steady = 0;

	ck_assert(agent_collector_open(&collector, 0)); /* the least that there is */
	for (uint32_t i = 0; i < DIFFERENT; i++) {
		const struct agent_frame frames[] = {{10 + i, 5}, {2, 9}, {1, 7}};

		agent_collector_walk(&collector, NULL, frames, 3, false, NULL);
		if (i < STEADY)
			agent_collector_walk(&collector, NULL, fgm, 3, false, NULL);
		ck_assert_uint_le(incstack_profile_nodes(collector.profile), 1024);
	}
	profile = agent_collector_take(&collector, true, &counts);
	ck_assert_uint_eq(counts.traces, DIFFERENT + STEADY);
	ck_assert_uint_eq(samples(profile), DIFFERENT + STEADY);
	ck_assert_uint_eq(agent_counts_lost(&counts), 0);
	for (uint32_t i = 1; i < incstack_profile_nodes(profile); i++) {
		struct incstack_profile_node node = {.size = sizeof(node)};

		ck_assert_int_eq(incstack_profile_node(profile, i, &node), 0);
		if (!node.frame.name && node.frame.function == fgm[0].method)
			steady += node.weights[0];
		ck_assert(node.frame.name || node.frame.function > 2 || !node.weights[0]);
	}
	ck_assert_uint_eq(steady, STEADY);
	incstack_profile_destroy(profile);
	agent_collector_close(&collector);
}
END_TEST

/* ---- without memory ----------------------------------------------------------------- */

enum { WALKS = 15, DEEP = 300, TREES = 6 };

/* What an outcome must be: each sample is in the profile or lost, and all goes on. */
static int look_at(struct agent_collector *collector, uint64_t wanted, bool failed)
{
	struct agent_counts counts;
	struct incstack_profile *profile = agent_collector_take(collector, true, &counts);

	ck_assert_uint_eq(counts.traces + counts.lost[AGENT_LOSS_MEMORY], wanted);
	ck_assert(failed || !agent_counts_lost(&counts));
	ck_assert_uint_eq(samples(profile), counts.traces);
	incstack_profile_destroy(profile);
	agent_collector_close(collector);
	return agent_counts_lost(&counts) ? INCSTACK_ENOMEM : 0;
}

static int walk_without_memory(long n, bool for_ever, bool *something_failed)
{
	struct agent_collector collector;
	struct agent_last_walk last = {0};
	struct agent_frame frames[DEEP];

	ck_assert(agent_collector_open(&collector, MEMORY));
	for (uint32_t i = 0; i < DEEP; i++)
		frames[i] = (struct agent_frame){.method = DEEP - i, .bci = 1};
	arm(n, for_ever);
	for (uint32_t i = 1; i <= DEEP; i += DEEP / WALKS)
		agent_collector_walk(&collector, i % 40 == 1 ? "t" : NULL, frames + DEEP - i, i,
				     false, &last);
	*something_failed = disarm();
	agent_collector_walk(&collector, NULL, frames, DEEP, false, &last);
	agent_last_walk_free(&last);
	return look_at(&collector, WALKS + 1, *something_failed);
}

/* Three traces of a thread, the last one as deep as `depth`. */
static void add_trees(struct agent_collector *collector, struct incstack_frame_object *objects,
		      uint32_t depth)
{
	struct incstack_trace t3 = {.top = &objects[depth]};
	struct incstack_trace t2 = {.next = &t3, .top = &objects[0]};
	struct incstack_trace t1 = {.next = &t2, .top = &objects[1]};
	const struct incstack_tree tree = {.traces = &t1, .count = 3, .objects = depth + 1};

	agent_collector_tree(collector, depth % 2 ? "t" : NULL, &tree);
}

static int trees_without_memory(long n, bool for_ever, bool *something_failed)
{
	struct agent_collector collector;
	struct incstack_frame_object objects[DEEP];

	ck_assert(agent_collector_open(&collector, MEMORY));
	for (uint32_t i = 0; i < DEEP; i++)
		objects[i] = (struct incstack_frame_object){.parent = i ? &objects[i - 1] : NULL,
							    .function = i + 1,
							    .address = DEEP - i,
							    .flags = i ? FILLED : BASE};
	arm(n, for_ever);
	for (uint32_t i = 1; i <= TREES; i++)
		add_trees(&collector, objects, i * (DEEP / TREES) - 1);
	*something_failed = disarm();
	add_trees(&collector, objects, 7);
	return look_at(&collector, 3 * (TREES + 1), *something_failed);
}

/* A part that cannot begin leaves the old one as it is. */
static int next_without_memory(long n, bool for_ever, bool *something_failed)
{
	struct agent_collector collector;
	struct agent_counts counts;
	struct incstack_profile *profile;
	int result;

	ck_assert(agent_collector_open(&collector, MEMORY));
	agent_collector_walk(&collector, NULL, fgm, 3, false, NULL);
	arm(n, for_ever);
	profile = agent_collector_take(&collector, false, &counts);
	*something_failed = disarm();
	ck_assert_uint_eq(counts.traces, 1);
	incstack_profile_destroy(profile);
	agent_collector_walk(&collector, NULL, gm, 2, false, NULL);
	result = look_at(&collector, profile ? 1 : 2, *something_failed);
	return profile ? result : INCSTACK_ENOMEM;
}

START_TEST(without_memory_samples_are_lost_and_counted)
{
	fail_each_allocation(walk_without_memory, 20);
	fail_each_allocation(trees_without_memory, 20);
	fail_each_allocation(next_without_memory, 1);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("collector");
	Suite *suite = suite_create("agent");

	tcase_add_test(tests, walks_are_counted_and_compared_with_the_last_of_their_thread);
	tcase_add_test(tests, trees_are_counted_by_what_they_share);
	tcase_add_test(tests, parts_begin_anew_and_the_last_ends_all);
	tcase_add_test(tests, losses_are_counted_while_the_profile_is_in_use);
	tcase_add_test(tests, a_profile_that_grows_beyond_its_memory_is_pruned);
	tcase_add_test(tests, without_memory_samples_are_lost_and_counted);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
