/* SPDX-License-Identifier: MIT
 *
 * Tests the partial calling context tree on cases worked out by hand, with the properties that
 * Whaley 2000, section 5, states: different nodes for different contexts, one edge for repeated
 * calls, no node for what was never sampled, calls counted separately from time, full context in
 * recursion, and a sample too deep to be connected. Then tests real samples, in which the core
 * tells which frames are old.
 */
#include <malloc.h>
#include <stdlib.h>

#include <incstack/native.h>
#include <incstack/pcct.h>

#include "find_context.h"
#include "run_suite.h"
#include "sample_native.h"

enum { M = 1, A, B, C, D, R };
enum { FILLED = INCSTACK_OBJECT_FILLED, BASE = FILLED | INCSTACK_OBJECT_BASE };

/* An activation at an address of its own. */
static struct incstack_frame_object frame(const struct incstack_frame_object *parent,
					  uint64_t function, int32_t position)
{
	static uintptr_t address = 1 << 20;

	return (struct incstack_frame_object){.parent = parent,
					      .function = function,
					      .address = address -= 16,
					      .position = position,
					      .flags = parent ? FILLED : BASE};
}

/* The same activation in another tree. */
static struct incstack_frame_object again(const struct incstack_frame_object *parent,
					  const struct incstack_frame_object *earlier)
{
	struct incstack_frame_object object = *earlier;

	object.parent = parent;
	return object;
}

static struct incstack_pcct *made(uint32_t contexts, uint32_t depth)
{
	const struct incstack_pcct_options options = {
		.size = sizeof(options), .contexts = contexts, .depth = depth};
	struct incstack_pcct *pcct = NULL;

	ck_assert_int_eq(incstack_pcct_create(&options, &pcct), 0);
	return pcct;
}

static void add(struct incstack_pcct *pcct, struct incstack_trace *traces, size_t count)
{
	struct incstack_tree tree = {.traces = traces, .count = count};

	for (size_t i = 0; i + 1 < count; i++)
		traces[i].next = &traces[i + 1];
	ck_assert_int_eq(incstack_pcct_add_tree(pcct, &tree), 0);
}

/* The context of a chain of functions, all called at position 0; NONE if there is none. */
static uint32_t path(const struct incstack_pcct *pcct, const int *functions, int count)
{
	uint32_t at = INCSTACK_PCCT_NONE;

	for (int i = 0; i < count; i++) {
		at = find_context(pcct, at, i ? 0 : -1, (uint64_t)functions[i]);
		if (at == INCSTACK_PCCT_NONE)
			return at;
	}
	return at;
}
#define PATH(...) \
	path(pcct, (const int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))

static void weighs(const struct incstack_pcct *pcct, uint32_t number, uint64_t time, uint64_t calls,
		   uint64_t activations)
{
	struct incstack_pcct_context context = {.size = sizeof(context)};

	ck_assert_int_eq(incstack_pcct_context(pcct, INCSTACK_PCCT_BY_NUMBER, number, &context), 0);
	ck_assert_uint_eq(context.time, time);
	ck_assert_uint_eq(context.calls, calls);
	ck_assert_uint_eq(context.activations, activations);
}

/* Returns the number of the context at a place of the order by time; NONE beyond the last. */
static uint32_t by_time(const struct incstack_pcct *pcct, uint32_t place)
{
	struct incstack_pcct_context context = {.size = sizeof(context)};
	int error = incstack_pcct_context(pcct, INCSTACK_PCCT_BY_TIME, place, &context);

	return error ? INCSTACK_PCCT_NONE : context.number;
}

/* M calls A twice and D once; the As call C (and B, which no sample meets), D calls
 * A and, twice, C, of which the first is sampled twice. */
START_TEST(contexts_calls_and_time_are_told_apart)
{
	struct incstack_pcct *pcct = made(100, 0);
	struct incstack_frame_object m = frame(NULL, M, 0), a1 = frame(&m, A, 0);
	struct incstack_frame_object c1 = frame(&a1, C, 0), a2 = frame(&m, A, 0);
	struct incstack_frame_object c2 = frame(&a2, C, 0), d = frame(&m, D, 0);
	struct incstack_frame_object a3 = frame(&d, A, 0), c3 = frame(&d, C, 0);
	struct incstack_frame_object c4 = frame(&d, C, 0);
	struct incstack_trace traces[] = {
		{.weight = 1, .top = &c1, .old = NULL}, {.weight = 1, .top = &c2, .old = &m},
		{.weight = 1, .top = &a3, .old = &m},   {.weight = 1, .top = &c3, .old = &d},
		{.weight = 1, .top = &c3, .old = &c3},  {.weight = 1, .top = &c4, .old = &d}};
	struct incstack_pcct_stats stats = {.size = sizeof(stats)};

	add(pcct, traces, 6);
	ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), 0);
	ck_assert_uint_eq(stats.size, sizeof(stats));
	ck_assert_uint_eq(stats.contexts, 6);
	ck_assert_uint_eq(stats.samples, 6);
	stats.size--;
	ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), INCSTACK_EINVAL);
	weighs(pcct, PATH(M), 0, 3, 1);
	weighs(pcct, PATH(M, A), 0, 2, 2);
	weighs(pcct, PATH(M, A, C), 2, 2, 2);
	weighs(pcct, PATH(M, D), 0, 3, 1);
	weighs(pcct, PATH(M, D, A), 1, 1, 1);
	weighs(pcct, PATH(M, D, C), 3, 3, 2);
	ck_assert_uint_eq(PATH(M, D, A, C), INCSTACK_PCCT_NONE);
	ck_assert_uint_eq(PATH(M, A, B), INCSTACK_PCCT_NONE);
	ck_assert_uint_eq(by_time(pcct, 0), PATH(M, D, C));
	ck_assert_uint_eq(by_time(pcct, 1), PATH(M, A, C));
	ck_assert_uint_eq(by_time(pcct, 2), PATH(M, D, A));
	ck_assert_uint_eq(by_time(pcct, 3), INCSTACK_PCCT_NONE); /* the others weigh nothing */
	ck_assert_uint_eq(by_time(pcct, 6), INCSTACK_PCCT_NONE);
	incstack_pcct_destroy(pcct);
}
END_TEST

/* The last three samples in one activation of C, or in three: the same time. */
START_TEST(one_long_call_is_not_three_short_ones)
{
	struct incstack_frame_object m = frame(NULL, M, 0), c1 = frame(&m, C, 0);
	struct incstack_frame_object c2 = frame(&m, C, 0), c3 = frame(&m, C, 0);
	struct incstack_trace once[] = {{.weight = 10, .top = &c1},
					{.weight = 10, .top = &c1, .old = &c1},
					{.weight = 10, .top = &c1, .old = &c1}};
	struct incstack_trace often[] = {{.weight = 10, .top = &c1},
					 {.weight = 10, .top = &c2, .old = &m},
					 {.weight = 10, .top = &c3, .old = &m}};
	struct incstack_pcct *pcct = made(100, 0);

	add(pcct, once, 3);
	weighs(pcct, PATH(M, C), 30, 30, 10);
	incstack_pcct_destroy(pcct);
	pcct = made(100, 0);
	add(pcct, often, 3);
	weighs(pcct, PATH(M, C), 30, 30, 30);
	incstack_pcct_destroy(pcct);
}
END_TEST

/* After a retrieve the callers are other objects; they are found by their way. */
START_TEST(old_frames_are_found_again_in_the_next_tree)
{
	struct incstack_frame_object m1 = frame(NULL, M, 0), d1 = frame(&m1, D, 0);
	struct incstack_frame_object m2 = again(NULL, &m1), d2 = again(&m2, &d1);
	struct incstack_frame_object c = frame(&d2, C, 0);
	struct incstack_trace first = {.weight = 1, .top = &d1};
	struct incstack_trace second = {.weight = 1, .top = &c, .old = &d2};
	struct incstack_pcct *pcct = made(100, 0);

	add(pcct, &first, 1);
	add(pcct, &second, 1);
	weighs(pcct, PATH(M), 0, 1, 1);
	weighs(pcct, PATH(M, D), 1, 2, 1);
	weighs(pcct, PATH(M, D, C), 1, 1, 1);
	incstack_pcct_destroy(pcct);
}
END_TEST

START_TEST(recursion_keeps_its_full_context)
{
	struct incstack_pcct *pcct = made(100, 0);
	struct incstack_frame_object m = frame(NULL, M, 0), r1 = frame(&m, R, 0);
	struct incstack_frame_object r2 = frame(&r1, R, 0), r3 = frame(&r2, R, 0);
	struct incstack_frame_object c = frame(&r3, C, 0), c1 = frame(&r1, C, 0);
	struct incstack_trace traces[] = {{.weight = 1, .top = &c},
					  {.weight = 1, .top = &c1, .old = &r1}};

	add(pcct, traces, 2);
	weighs(pcct, PATH(M, R, R, R, C), 1, 1, 1);
	weighs(pcct, PATH(M, R, C), 1, 1, 1);
	weighs(pcct, PATH(M, R), 0, 2, 1);
	ck_assert_uint_eq(PATH(M, R, R, C), INCSTACK_PCCT_NONE);
	incstack_pcct_destroy(pcct);
}
END_TEST

/* Left M > A > C, then right M > D > R > R > R > B with only three frames looked at:
 * R > R > B hang under a root for the first R, and M > D is not there. */
START_TEST(a_sample_too_deep_is_not_connected)
{
	struct incstack_pcct *pcct = made(100, 3);
	struct incstack_frame_object m = frame(NULL, M, 0), a = frame(&m, A, 0);
	struct incstack_frame_object c = frame(&a, C, 0), d = frame(&m, D, 0);
	struct incstack_frame_object r1 = frame(&d, R, 0), r2 = frame(&r1, R, 0);
	struct incstack_frame_object r3 = frame(&r2, R, 0), b = frame(&r3, B, 0);
	struct incstack_frame_object b2 = frame(&r3, B, 0);
	struct incstack_trace traces[] = {{.weight = 1, .top = &c},
					  {.weight = 1, .top = &b, .old = &m},
					  {.weight = 1, .top = &b2, .old = &r3}};
	struct incstack_pcct_stats stats = {.size = sizeof(stats)};

	add(pcct, traces, 3);
	weighs(pcct, PATH(M, A, C), 1, 1, 1);
	ck_assert_uint_eq(PATH(M, D), INCSTACK_PCCT_NONE);
	weighs(pcct, PATH(R), 0, 0, 0);
	weighs(pcct, PATH(R, R, R, B), 2, 2, 2);
	weighs(pcct, PATH(R, R, R), 0, 2, 1);
	ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), 0);
	ck_assert_uint_eq(stats.unconnected, 1);
	incstack_pcct_destroy(pcct);
}
END_TEST

START_TEST(call_sites_are_different_edges)
{
	struct incstack_pcct *pcct = made(100, 0);
	struct incstack_frame_object m1 = frame(NULL, M, 3), m2 = frame(NULL, M, 7);
	struct incstack_frame_object a1 = frame(&m1, A, 0), a2 = frame(&m2, A, 0);
	struct incstack_trace traces[] = {{.weight = 1, .top = &a1}, {.weight = 2, .top = &a2}};
	uint32_t m;

	add(pcct, traces, 2);
	m = find_context(pcct, INCSTACK_PCCT_NONE, -1, M);
	weighs(pcct, find_context(pcct, m, 3, A), 1, 1, 1);
	weighs(pcct, find_context(pcct, m, 7, A), 2, 2, 2);
	incstack_pcct_destroy(pcct);
}
END_TEST

START_TEST(a_full_buffer_is_purged_and_counted)
{
	struct incstack_pcct *pcct = made(3, 0);
	struct incstack_frame_object m = frame(NULL, M, 0), a = frame(&m, A, 0);
	struct incstack_frame_object c = frame(&a, C, 0), d = frame(&m, D, 0);
	struct incstack_frame_object r = frame(&c, R, 0);
	struct incstack_trace traces[] = {{.weight = 5, .top = &c},
					  {.weight = 2, .top = &d, .old = &m}};
	/* Four contexts do not fit: the sample is dropped, the rest stays and is added. */
	struct incstack_trace deep[] = {{.next = &deep[1], .weight = 1, .top = &r},
					{.weight = 4, .top = &d, .old = &m}};
	struct incstack_tree tree = {.traces = deep, .count = 2};
	struct incstack_pcct_stats stats = {.size = sizeof(stats)};

	add(pcct, traces, 2);
	ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), 0);
	ck_assert_uint_eq(stats.purges, 1);
	ck_assert_uint_eq(stats.purged_time, 5);
	ck_assert_uint_eq(stats.contexts, 2);
	ck_assert_uint_eq(stats.samples, 2);
	weighs(pcct, PATH(M, D), 2, 2, 2);
	weighs(pcct, PATH(M), 0, 2, 0); /* no new activation */
	ck_assert_int_eq(incstack_pcct_add_tree(pcct, &tree), INCSTACK_ELIMIT);
	ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), 0);
	ck_assert_uint_eq(stats.purges, 1);
	ck_assert_uint_eq(stats.dropped, 1);
	ck_assert_uint_eq(stats.samples, 3);
	weighs(pcct, PATH(M, D), 6, 6, 2);
	incstack_pcct_destroy(pcct);
}
END_TEST

/* A sample whose callers were in the tree, and which fits exactly when all contexts have been
 * removed. The way to its callers then leads nowhere. */
START_TEST(a_way_is_not_kept_over_a_purge)
{
	struct incstack_pcct *pcct = made(3, 0);
	struct incstack_frame_object m = frame(NULL, M, 0), a = frame(&m, A, 0);
	struct incstack_frame_object c = frame(&a, C, 0), d = frame(&a, D, 0);
	struct incstack_trace traces[] = {{.weight = 5, .top = &c},
					  {.weight = 2, .top = &d, .old = &a}};
	struct incstack_pcct_stats stats = {.size = sizeof(stats)};

	add(pcct, traces, 2);
	ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), 0);
	ck_assert_uint_eq(stats.purges, 1);
	ck_assert_uint_eq(stats.dropped, 0);
	ck_assert_uint_eq(stats.contexts, 3);
	weighs(pcct, PATH(M, A, D), 2, 2, 2);
	incstack_pcct_destroy(pcct);
}
END_TEST

/* However many samples there are, only the places on the stack are remembered. */
START_TEST(memory_does_not_grow_with_the_samples)
{
	enum { TRACES = 100000 };
	struct incstack_frame_object m = frame(NULL, M, 0), *tops = calloc(TRACES, sizeof(*tops));
	struct incstack_trace *traces = calloc(TRACES, sizeof(*traces));
	struct incstack_pcct *pcct = made(16, 4);

	for (int i = 0; i < TRACES; i++) {
		tops[i] = frame(&m, C, 0);
		tops[i].address = m.address - 16;
		traces[i] =
			(struct incstack_trace){.weight = 1, .top = &tops[i], .old = i ? &m : NULL};
	}
	struct mallinfo2 before = mallinfo2();
	add(pcct, traces, TRACES);
	struct mallinfo2 after = mallinfo2();
	ck_assert_uint_le(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd + 10000);
	weighs(pcct, PATH(M, C), TRACES, TRACES, 1);
	incstack_pcct_destroy(pcct);
	free(traces);
	free(tops);
}
END_TEST

/* ---- real samples ---------------------------------------------------------------- */

static struct incstack_stack *stack;

__attribute__((noinline)) static void busy(int samples)
{
	for (int i = 0; i < samples; i++)
		ck_assert_int_eq(sample_native(stack, 0, 1), 0);
	__asm__ volatile("");
}

__attribute__((noinline)) static void caller(int calls, int samples)
{
	for (int i = 0; i < calls; i++)
		busy(samples);
	__asm__ volatile("");
}

/* Six samples on top. By figure 7 its edge counts in each; its activations and those of
 * its caller count once. */
static void sampled(int calls, int samples, uint64_t called, uint64_t activations)
{
	struct incstack_pcct *pcct = made(100, 0);
	struct incstack_pcct_context top = {.size = sizeof(top)};
	struct incstack_tree *tree;

	for (int i = 0; i < calls; i++)
		caller(1, samples);
	ck_assert_int_eq(incstack_stack_retrieve(stack, &tree), 0);
	ck_assert_int_eq(incstack_pcct_add_tree(pcct, tree), 0);
	ck_assert_int_eq(incstack_pcct_context(pcct, INCSTACK_PCCT_BY_TIME, 0, &top), 0);
	ck_assert_uint_eq(by_time(pcct, 1), INCSTACK_PCCT_NONE);
	weighs(pcct, top.number, 6, 6, activations);
	weighs(pcct, top.parent, 0, called, called);
	incstack_tree_release(tree);
	incstack_pcct_destroy(pcct);
}

START_TEST(the_core_tells_old_activations)
{
	const struct incstack_options options = {.size = sizeof(options), .distance = 1};
	struct incstack_runtime *runtime;

	ck_assert_int_eq(incstack_runtime_create_native(&options, &runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(runtime, &stack), 0);
	sampled(1, 6, 1, 1);
	sampled(6, 1, 6, 6);
	sampled(2, 3, 2, 2);
	incstack_stack_destroy(stack);
	incstack_runtime_destroy(runtime);
}
END_TEST

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

START_TEST(the_hottest_are_known_at_any_moment)
{
	enum { FUNCTIONS = 50 };
	struct incstack_pcct *pcct = made(FUNCTIONS, 0);
	uint64_t weight[FUNCTIONS] = {0};
	uint32_t random = 5;

	for (int i = 0; i < 5000; i++) {
		struct incstack_pcct_context context = {.size = sizeof(context)};
		uint32_t function = next_random(&random) % FUNCTIONS;
		struct incstack_frame_object top = frame(NULL, function, 0);
		struct incstack_trace trace = {.weight = next_random(&random) % 4, .top = &top};
		uint64_t before = UINT64_MAX;
		uint32_t count = 0, with_weight = 0;

		weight[function] += trace.weight;
		add(pcct, &trace, 1);
		for (; !incstack_pcct_context(pcct, INCSTACK_PCCT_BY_TIME, count, &context);
		     count++) {
			ck_assert_uint_eq(context.time, weight[context.function]);
			ck_assert_uint_le(context.time, before);
			before = context.time;
		}
		for (int k = 0; k < FUNCTIONS; k++)
			with_weight += weight[k] != 0;
		ck_assert_uint_eq(count, with_weight);
	}
	incstack_pcct_destroy(pcct);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
	struct incstack_pcct_options options = {.size = sizeof(options)};
	struct incstack_pcct *pcct = NULL;
	struct incstack_pcct_stats stats = {.size = 1};
	struct incstack_pcct_context context = {.size = sizeof(context)};
	struct incstack_frame_object m = frame(NULL, M, 0);
	struct incstack_trace trace = {.weight = 1, .top = &m};

	ck_assert_int_eq(incstack_pcct_create(&options, &pcct), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_pcct_create(NULL, &pcct), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_pcct_add_tree(NULL, NULL), INCSTACK_EINVAL);
	pcct = made(1, 0);
	ck_assert_uint_eq(by_time(pcct, 0), INCSTACK_PCCT_NONE);
	add(pcct, &trace, 1);
	ck_assert_uint_eq(by_time(pcct, 0), 0);
	ck_assert_int_eq(incstack_pcct_context(pcct, (enum incstack_pcct_order)4, 0, &context),
			 INCSTACK_EINVAL);
	context.size = 1;
	ck_assert_int_eq(incstack_pcct_stats(pcct, &stats), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_pcct_context(pcct, INCSTACK_PCCT_BY_NUMBER, 0, &context),
			 INCSTACK_EINVAL);
	incstack_pcct_destroy(pcct);
	incstack_pcct_destroy(NULL);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("pcct");
	Suite *suite = suite_create("profile");

	tcase_add_test(tests, contexts_calls_and_time_are_told_apart);
	tcase_add_test(tests, one_long_call_is_not_three_short_ones);
	tcase_add_test(tests, old_frames_are_found_again_in_the_next_tree);
	tcase_add_test(tests, recursion_keeps_its_full_context);
	tcase_add_test(tests, a_sample_too_deep_is_not_connected);
	tcase_add_test(tests, call_sites_are_different_edges);
	tcase_add_test(tests, a_full_buffer_is_purged_and_counted);
	tcase_add_test(tests, a_way_is_not_kept_over_a_purge);
	tcase_add_test(tests, memory_does_not_grow_with_the_samples);
	tcase_add_test(tests, the_core_tells_old_activations);
	tcase_add_test(tests, the_hottest_are_known_at_any_moment);
	tcase_add_test(tests, bad_arguments_are_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
