/* SPDX-License-Identifier: MIT
 *
 * Tests the merge of two traces (mixed.h) on traces made by hand: where frames go in, and what happens if the
 * embedder names no machine frame, a wrong one, or none that is known.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <incstack/mixed.h>

#include "run_suite.h"

enum { FRAMES = 16 };

static struct incstack_frame_object machine[FRAMES];
static struct incstack_heap_object heap[FRAMES];
static struct incstack_trace machine_trace;
static struct incstack_heap_trace heap_trace;
static uint32_t loose, truncated, ends_truncated;

/* Machine frames 'A', 'B', ... at the addresses, the youngest first; after them -1. The letters serve as
 * functions. */
static void set_machine(const int *addresses, uint32_t end)
{
	size_t n = 0;
	memset(machine, 0, sizeof(machine));
	for (; addresses[n] >= 0; n++)
		machine[n] = (struct incstack_frame_object){.parent = &machine[n + 1],
							    .function = 'A' + n,
							    .address = (uintptr_t)addresses[n],
							    .flags = INCSTACK_OBJECT_FILLED};
	machine[n - 1].parent = NULL;
	machine[n - 1].flags |= end;
	machine_trace.top = machine;
}

/* Frames of the interpreter: letters are their functions, numbers are anchors with this address; after
 * them -1. */
static void set_heap(const int *frames, uint16_t end)
{
	size_t n = 0;
	memset(heap, 0, sizeof(heap));
	for (; frames[n] >= 0; n++) {
		heap[n].parent = &heap[n + 1];
		heap[n].frame.function = (uint64_t)frames[n];
		if (frames[n] < 'a' || frames[n] > 'z')
			heap[n].frame.flags = INCSTACK_MIXED_ANCHOR;
	}
	heap[n - 1].parent = NULL;
	heap[n - 1].frame.flags |= end;
	heap_trace.top = heap;
}

/* 'L' is a loop, 'N' a function that never runs frames: here the machine frames B and D, and A. */
static int expect_loops(void *context, const struct incstack_frame_object *o)
{
	ck_assert_ptr_eq(context, &loose);
	if (o->function == 'B' || o->function == 'D')
		return INCSTACK_MIXED_ALWAYS;
	return o->function == 'A' ? INCSTACK_MIXED_NEVER : 77;
}

/* The merged trace as a text: '+' behind a machine frame that runs frames, '?' behind a loose frame. */
static const char *merge(incstack_mixed_expect_fn *expect)
{
	static char text[4 * FRAMES + 1];
	struct incstack_mixed_frames f;
	const struct incstack_mixed_trace trace = {0, 0, &machine_trace, &heap_trace};
	char *at = text;
	ck_assert_int_eq(incstack_mixed_frames_begin(&f, &trace, expect, &loose), 0);
	while (incstack_mixed_frames_next(&f)) {
		ck_assert_ptr_ne(f.machine ? (const void *)f.machine : f.heap, NULL);
		ck_assert(!f.machine || !f.heap);
		*at++ = (char)(f.machine ? f.machine->function : f.heap->frame.function);
		if (f.flags & INCSTACK_MIXED_RUNS)
			*at++ = '+';
		if (f.flags & INCSTACK_MIXED_LOOSE)
			*at++ = '?';
	}
	ck_assert_int_eq(incstack_mixed_frames_next(&f), 0);
	*at = 0;
	loose = f.loose;
	truncated = f.truncated;
	return text;
}

#define MACHINE(...) set_machine((const int[]){__VA_ARGS__, -1}, INCSTACK_OBJECT_BASE)
#define HEAP(...) set_heap((const int[]){__VA_ARGS__, -1}, INCSTACK_HEAP_BASE)

static void begin(void)
{
	ends_truncated = 0;
}

static void expect_merged(const char *text, uint32_t loose_groups)
{
	ck_assert_str_eq(merge(NULL), text);
	ck_assert_uint_eq(loose, loose_groups);
	ck_assert_uint_eq(truncated, ends_truncated);
}

START_TEST(test_frames_come_before_the_machine_frame_that_runs_them)
{
	MACHINE(200, 210, 220, 230, 240);
	HEAP('x', 'y', 219, 'z', 230);
	expect_merged("AxyB+CzD+E", 0);
	HEAP('x', 210, 'y', 239);
	expect_merged("AxB+CyD+E", 0);
	HEAP('x', 205);
	expect_merged("xA+BCDE", 0);
}
END_TEST

START_TEST(test_frames_after_the_last_anchor_are_outermost)
{
	MACHINE(200, 210, 220);
	HEAP('x', 210, 'y', 'z');
	expect_merged("AxB+Cyz", 0);
	HEAP('y', 'z');
	expect_merged("ABCyz", 0);
}
END_TEST

START_TEST(test_one_machine_frame_runs_several_groups)
{
	MACHINE(200, 210, 220);
	HEAP('x', 210, 'y', 215, 'z', 219);
	expect_merged("AxyzB+C", 0);
	HEAP(210, 'y', 215); /* a group without frames */
	expect_merged("AyB+C", 0);
}
END_TEST

/* A was inlined into B, and B into C. */
START_TEST(test_inlined_functions)
{
	MACHINE(210, 210, 210, 220, 230);
	HEAP('x', 213, 'y', 222);
	expect_merged("ABxC+yD+E", 0);
}
END_TEST

START_TEST(test_anchor_that_no_frame_contains)
{
	MACHINE(200, 210, 220, 230);
	HEAP('x', 190, 'y', 221); /* too young */
	expect_merged("x?AByC+D", 1);
	HEAP('x', 3, 'y', 211);
	expect_merged("x?AyB+CD", 1);
	HEAP('x', 211, 'y', 205); /* in the wrong order */
	expect_merged("AxB+y?CD", 1);
	HEAP('x', 211, 'y', 231, 'z', 5); /* in the outermost frame, and in the wrong order */
	expect_merged("AxB+CDy?z?", 2);
	HEAP('x', 212, 'y', 205, 'z', 213); /* back in a frame that was shown */
	expect_merged("AxB+y?z?CD", 2);
}
END_TEST

START_TEST(test_truncated_machine_trace)
{
	ends_truncated = 1;
	set_machine((const int[]){200, 210, 220, -1}, INCSTACK_OBJECT_TRUNCATED);
	HEAP('x', 205, 'y', 300, 'z', 320);
	expect_merged("xA+BCy?z?", 2);
	HEAP('x', 205, 'y', 300, 'z');
	expect_merged("xA+BCy?z", 1);
}
END_TEST

START_TEST(test_truncated_interpreter_trace)
{
	ends_truncated = 1;
	MACHINE(200, 210, 220, 230);
	set_heap((const int[]){'x', 'y', -1}, INCSTACK_HEAP_TRUNCATED);
	expect_merged("ABCDx?y?", 1);
	set_heap((const int[]){'x', 205, 'y', -1}, INCSTACK_HEAP_TRUNCATED);
	expect_merged("xA+BCDy?", 1);
	set_heap((const int[]){'x', 205, 'y', 215, -1}, INCSTACK_HEAP_TRUNCATED);
	expect_merged("xA+yB+CD", 0); /* the anchor's callers are unknown */
}
END_TEST

START_TEST(test_expectation)
{
	MACHINE(200, 210, 220, 230, 240);
	HEAP('x', 211, 'y', 221, 'z', 231);
	ck_assert_str_eq(merge(expect_loops), "AxB+yC+zD+E");
	ck_assert_uint_eq(loose, 0);
	HEAP('x', 'y', 231); /* an anchor is missing */
	ck_assert_str_eq(merge(expect_loops), "AB?CxyD+E");
	ck_assert_uint_eq(loose, 1);
	HEAP('w', 201, 'x', 211, 'z', 231);
	ck_assert_str_eq(merge(expect_loops), "w?AxB+CzD+E");
	ck_assert_uint_eq(loose, 1);
}
END_TEST

START_TEST(test_traces_find_each_other)
{
	static struct incstack_trace m[4];
	static struct incstack_heap_trace h[4];
	struct incstack_tree machine_tree = {.traces = m};
	const struct incstack_heap_tree heap_tree = {.traces = h};
	const struct incstack_mixed_tree tree = {&machine_tree, &heap_tree};
	struct incstack_mixed_trace trace = {0};
	const uint64_t machine_ids[] = {1, 2, 4, 6}, heap_ids[] = {2, 3, 4, 5};
	for (int i = 0; i < 4; i++) {
		m[i] = (struct incstack_trace){
			.next = i < 3 ? &m[i + 1] : NULL, .id = machine_ids[i], .weight = 70};
		h[i] = (struct incstack_heap_trace){
			.next = i < 3 ? &h[i + 1] : NULL, .id = heap_ids[i], .weight = 80};
	}
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, &trace), 1);
	ck_assert(trace.machine == &m[1] && trace.heap == &h[0]);
	ck_assert(trace.id == 80 && trace.weight == 70);
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, &trace), 1);
	ck_assert(trace.machine == &m[2] && trace.heap == &h[2]);
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, &trace), 0);
}
END_TEST

START_TEST(test_bad_arguments)
{
	struct incstack_mixed mixed = {NULL, NULL, NULL, 0};
	struct incstack_mixed_tree tree = {NULL, NULL};
	struct incstack_mixed_trace trace = {0};
	struct incstack_mixed_frames frames;
	ck_assert_int_eq(incstack_mixed_sample(NULL, NULL, 1, 0, 0), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_retrieve(NULL, 0, &tree), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_retrieve(&mixed, 0, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_sample(&mixed, NULL, 1, 0, 0), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_retrieve(&mixed, 0, &tree), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_tree_next(NULL, &trace), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, &trace), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_tree_next(&tree, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_frames_begin(NULL, &trace, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_frames_begin(&frames, NULL, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_frames_begin(&frames, &trace, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_mixed_frames_next(NULL), INCSTACK_EINVAL);
	incstack_mixed_tree_release(&tree);
	incstack_mixed_tree_release(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mixed_frames");
	TCase *merges = tcase_create("merges"), *others = tcase_create("others");
	tcase_add_checked_fixture(merges, begin, NULL);
	tcase_add_test(merges, test_frames_come_before_the_machine_frame_that_runs_them);
	tcase_add_test(merges, test_frames_after_the_last_anchor_are_outermost);
	tcase_add_test(merges, test_one_machine_frame_runs_several_groups);
	tcase_add_test(merges, test_inlined_functions);
	tcase_add_test(merges, test_anchor_that_no_frame_contains);
	tcase_add_test(merges, test_truncated_machine_trace);
	tcase_add_test(merges, test_truncated_interpreter_trace);
	tcase_add_test(merges, test_expectation);
	tcase_add_test(others, test_traces_find_each_other);
	tcase_add_test(others, test_bad_arguments);
	suite_add_tcase(suite, merges);
	suite_add_tcase(suite, others);
	return run_suite(suite);
}
