/* SPDX-License-Identifier: MIT
 *
 * What a sample of two stacks walks, and what happens if it or a retrieve fails half-way.
 */
#include "two_stacks.h"

#include "../unit/run_suite.h"

/* Samples `count` times in a new frame of the interpreter. Returns how many frames were walked, on both stacks. */
static NOINLINE uint64_t sample_often(unsigned count)
{
	struct incstack_stats before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
	struct incstack_heap_stats heap_before = {.size = sizeof(heap_before)};
	struct incstack_heap_stats heap_after = {.size = sizeof(heap_after)};
	incstack_stack_stats(machine_stack, &before);
	incstack_heap_stack_stats(heap_stack, &heap_before);
	for (unsigned i = 0; i < count; i++) {
		push_node(1, 1);
		REQUIRE(sample_here((uintptr_t)top, 0) == 0);
		pop_node();
	}
	incstack_stack_stats(machine_stack, &after);
	incstack_heap_stack_stats(heap_stack, &heap_after);
	return after.walked - before.walked + heap_after.walked - heap_before.walked;
}

static NOINLINE uint64_t sample_below(unsigned frames)
{
	volatile char here = 0;
	push_node(1, 1);
	top->machine = (const void *)(uintptr_t)&here;
	uint64_t walked;
	if (frames) {
		walked = sample_below(frames - 1);
	} else {
		sample_often(100);
		walked = sample_often(1000);
	}
	pop_node();
	return walked;
}

/* A sample walks the frames that are new, however many there are. */
START_TEST(test_samples_walk_new_frames)
{
	open_all(distances[_i], INCSTACK_MODE_PATCH);
	const uint64_t shallow = sample_below(2), deep = sample_below(500);
	ck_assert_uint_ge(deep, 1000);
	ck_assert_uint_le(deep, shallow + 1000);
	close_all();
}
END_TEST

static void take_and_count(int error, uint32_t id)
{
	ck_assert_int_eq(sample_here((uintptr_t)top, id), error);
}

/* More frames than a chunk of memory has place for. */
static void push_many(void)
{
	for (int i = 0; i < 5000; i++)
		push_node(1, 1);
}

/* The interpreter's part of a sample is refused, then its part of a retrieve. */
START_TEST(test_failures_half_way)
{
	struct incstack_mixed_tree tree;
	struct incstack_mixed_trace trace = {0};
	open_all(1, INCSTACK_MODE_PATCH);
	push_many();
	no_memory = true;
	take_and_count(INCSTACK_ENOMEM, 1);
	no_memory = false;
	ck_assert_int_eq(sample_here(0, 0), INCSTACK_EINVAL);
	take_and_count(0, 2);
	no_memory = true;
	ck_assert_int_eq(incstack_mixed_retrieve(&mixed, (uintptr_t)top, &tree), INCSTACK_ENOMEM);
	take_and_count(INCSTACK_EBUSY, 3);
	no_memory = false;
	ck_assert_int_eq(incstack_mixed_retrieve(&mixed, (uintptr_t)top, &tree), 0);
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, &trace), 1);
	ck_assert_uint_eq(trace.id, 2);
	ck_assert_uint_eq(trace.weight, 9);
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, &trace), 0);
	incstack_mixed_tree_release(&tree);
	push_many();
	take_and_count(0, 4);
	no_memory = true;
	ck_assert_int_eq(incstack_mixed_retrieve(&mixed, (uintptr_t)top, &tree), INCSTACK_ENOMEM);
	ck_assert_ptr_nonnull(mixed.kept);
	incstack_tree_release(mixed.kept); /* a leak would be reported by the address sanitizer */
	no_memory = false;
	incstack_heap_destroy(heap);
	drop_to(NULL);
	incstack_stack_destroy(machine_stack);
	incstack_runtime_destroy(runtime);
}
END_TEST

static struct incstack_mixed_frames sample_and_walk(const void *machine)
{
	struct incstack_mixed_tree tree;
	struct incstack_mixed_trace trace = {0};
	struct incstack_mixed_frames f;
	push_node(1, 1);
	push_node(2, 1);
	top->machine = machine;
	ck_assert_int_eq(sample_here((uintptr_t)top, 5), 0);
	ck_assert_int_eq(incstack_mixed_retrieve(&mixed, (uintptr_t)top, &tree), 0);
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, &trace), 1);
	ck_assert_int_eq(incstack_mixed_frames_begin(&f, &trace, NULL, NULL), 0);
	while (incstack_mixed_frames_next(&f))
		continue;
	incstack_mixed_tree_release(&tree);
	return f;
}

/* The walk of the embedder never ends, or an anchor has a wrong address. Behind one that is further out than all
 * machine frames, the right ones have no place either. */
START_TEST(test_embedder_that_returns_garbage)
{
	static const uintptr_t addresses[] = {0, 1, 4096, UINTPTR_MAX, (uintptr_t)&mixed};
	static const unsigned loose[] = {0, 1, 2, 4, 5};
	const char here = 0;
	open_all(distances[_i % 5], _i % 3 ? INCSTACK_MODE_PATCH : INCSTACK_MODE_FULL);
	ck_assert_uint_eq(sample_and_walk(&here).loose, 0);
	for (unsigned i = 1; i < 5; i++) {
		const struct incstack_mixed_frames f = sample_and_walk((const void *)addresses[i]);
		ck_assert_uint_eq(f.loose, loose[i]);
		ck_assert_uint_eq(f.truncated, 0);
	}
	in_circle = true;
	ck_assert_uint_eq(sample_and_walk(&here).truncated, 1);
	in_circle = false;
	ck_assert_ptr_null(mixed.kept);
	incstack_heap_destroy(heap);
	drop_to(NULL);
	incstack_stack_destroy(machine_stack);
	incstack_runtime_destroy(runtime);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mixed_rare");
	TCase *rare = tcase_create("rare");
	tcase_add_loop_test(rare, test_samples_walk_new_frames, 0,
			    4); /* a distance of 61 walks as far */
	tcase_add_test(rare, test_failures_half_way);
	tcase_add_loop_test(rare, test_embedder_that_returns_garbage, 0, 15);
	suite_add_tcase(suite, rare);
	return run_suite(suite);
}
