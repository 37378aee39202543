/* SPDX-License-Identifier: MIT
 *
 * Tests that traces of heap.h and of mixed.h become profiles: shared frames, names, frames that are left out,
 * and traces that are not complete.
 */
#include <stdlib.h>
#include <string.h>

#include <incstack/profile_heap.h>

#include "profile_nodes.h"
#include "run_suite.h"

static const struct incstack_profile_kind kinds[] = {{"samples", "count"}, {"time", "ns"}};
static struct incstack_profile *profile;
static unsigned described;

static void setup(void)
{
	described = 0;
	ck_assert_int_eq(incstack_profile_create(kinds, 2, &profile), 0);
}

static void teardown(void)
{
	incstack_profile_destroy(profile);
}

/* The profile as folded stacks. */
static void expect_folded(const char *text)
{
	char *written = NULL;
	size_t size;
	FILE *file = open_memstream(&written, &size);
	ck_assert_int_eq(incstack_profile_write(profile, INCSTACK_FORMAT_FOLDED, 1, file), 0);
	fclose(file);
	ck_assert_str_eq(written, text);
	free(written);
}

#define OBJECT(above, letter, where, bits) \
	{ \
		.parent = (above), .frame = { \
			.function = (letter), \
			.position = (where), \
			.flags = (bits) \
		} \
	}
#define BASE INCSTACK_HEAP_BASE

/* The functions are letters; x is left out. */
static int name_letter(uint64_t function, struct incstack_profile_frame *frame)
{
	static char letters[128][2];
	char *name = letters[function % 128];
	described++;
	name[0] = (char)function;
	frame->name = name;
	frame->name_length = 1;
	return function != 'x';
}

static int name_heap(void *context, const struct incstack_heap_frame *at,
		     struct incstack_profile_frame *frame)
{
	ck_assert_ptr_eq(context, &profile);
	ck_assert_uint_eq(frame->function, at->function);
	ck_assert_int_eq(frame->position, at->position == UINT32_MAX ? -1 : (int)at->position);
	return name_letter(at->function, frame);
}

static void add(const struct incstack_heap_trace *first)
{
	const struct incstack_heap_tree tree = {.traces = first};
	ck_assert_int_eq(incstack_profile_add_heap_tree(profile, &tree, name_heap, &profile), 0);
}

START_TEST(test_shared_objects_are_described_once)
{
	struct incstack_heap_object m = OBJECT(NULL, 'm', 1, BASE), f = OBJECT(&m, 'f', 1, 0);
	struct incstack_heap_object x = OBJECT(&f, 'x', 1, 0), g = OBJECT(&x, 'g', UINT32_MAX, 0);
	struct incstack_heap_object h = OBJECT(&f, 'h', 1, 0), i = OBJECT(&m, 'i', 1, 0);
	struct incstack_heap_trace t4 = {.top = &i, .old = &m, .weight = 8};
	struct incstack_heap_trace t3 = {.next = &t4, .top = &h, .old = &f, .weight = 4};
	struct incstack_heap_trace t2 = {.next = &t3, .top = &g, .old = &g, .weight = 2};
	struct incstack_heap_trace t1 = {.next = &t2, .top = &g, .weight = 1};
	add(&t1);
	ck_assert_uint_eq(described, 6);
	expect_folded("m;f;g 3\nm;f;h 4\nm;i 8\n");
}
END_TEST

/* A frame that looks like the one before keeps its node, unless a frame further out differs. */
START_TEST(test_frames_that_look_alike)
{
	struct incstack_heap_object m = OBJECT(NULL, 'm', 1, BASE), f = OBJECT(&m, 'f', 1, 0);
	struct incstack_heap_object m2 = OBJECT(NULL, 'm', 1, BASE), f2 = OBJECT(&m2, 'f', 1, 0);
	struct incstack_heap_object k = OBJECT(NULL, 'k', 1, BASE), f3 = OBJECT(&k, 'f', 1, 0);
	struct incstack_heap_object g3 = OBJECT(&f3, 'g', 1, 0);
	struct incstack_heap_object c = OBJECT(NULL, 'k', 1, INCSTACK_HEAP_TRUNCATED);
	struct incstack_heap_trace t4 = {.top = &c, .weight = 8};
	struct incstack_heap_trace t3 = {.next = &t4, .top = &g3, .weight = 4};
	struct incstack_heap_trace t2 = {.next = &t3, .top = &f2, .weight = 2};
	struct incstack_heap_trace t1 = {.next = &t2, .top = &f, .weight = 1};
	add(&t1);
	ck_assert_uint_eq(described, 6);
	expect_folded("m;f 3\nk;f;g 4\n[truncated];k 8\n");
}
END_TEST

/* `old` is not on the path of the trace before, or the chain does not lead to it. */
START_TEST(test_old_of_another_trace)
{
	struct incstack_heap_object m = OBJECT(NULL, 'm', 1, BASE), f = OBJECT(&m, 'f', 1, 0);
	struct incstack_heap_object g = OBJECT(NULL, 'g', 1, BASE);
	struct incstack_heap_object c = OBJECT(NULL, 'c', 1, INCSTACK_HEAP_TRUNCATED);
	struct incstack_heap_trace t4 = {.top = &f, .old = &m, .weight = 8};
	struct incstack_heap_trace t3 = {.next = &t4, .top = &c, .old = &g, .weight = 4};
	struct incstack_heap_trace t2 = {.next = &t3, .top = &g, .weight = 2};
	struct incstack_heap_trace t1 = {.next = &t2, .top = &f, .old = &f, .weight = 1};
	add(&t1);
	expect_folded("m;f 9\ng 2\n[truncated];c 4\n");
}
END_TEST

START_TEST(test_all_is_left_out)
{
	struct incstack_heap_object x = OBJECT(NULL, 'x', 1, BASE);
	struct incstack_heap_trace t1 = {.top = &x, .weight = 1};
	add(&t1);
	expect_folded("[left out] 1\n");
}
END_TEST

START_TEST(test_frames_without_a_description)
{
	struct incstack_heap_object m = OBJECT(NULL, 'm', 7, BASE);
	struct incstack_heap_trace t1 = {.top = &m, .weight = 1};
	const struct incstack_heap_tree tree = {.traces = &t1};
	struct incstack_profile_frame frame;
	ck_assert_int_eq(incstack_profile_add_heap_tree(profile, &tree, NULL, NULL), 0);
	frame = node_at(profile, 1).frame;
	ck_assert(frame.function == 'm' && frame.position == 7 && !frame.name);
}
END_TEST

/* ---- two stacks ------------------------------------------------------------------------ */

/* Machine frames have capital letters. */
static int name_mixed(void *context, const struct incstack_mixed_frames *at,
		      struct incstack_profile_frame *frame)
{
	ck_assert_ptr_eq(context, &profile);
	ck_assert_uint_eq(frame->function,
			  at->machine ? at->machine->function : at->heap->frame.function);
	if (at->flags & INCSTACK_MIXED_RUNS)
		return 0;
	return name_letter(frame->function, frame);
}

static struct incstack_frame_object outer = {
	.function = 'O', .address = 40, .flags = INCSTACK_OBJECT_BASE};
static struct incstack_frame_object loop = {.parent = &outer, .function = 'L', .address = 30};
static struct incstack_frame_object inner = {.parent = &loop, .function = 'I', .address = 20};

static void add_mixed(const struct incstack_heap_object *first,
		      const struct incstack_heap_object *second)
{
	struct incstack_trace m2 = {.id = 2, .weight = 2, .top = &inner};
	struct incstack_trace m1 = {.next = &m2, .id = 1, .weight = 1, .top = &inner};
	const struct incstack_heap_trace h2 = {.id = 2, .top = second};
	const struct incstack_heap_trace h1 = {.next = &h2, .id = 1, .top = first};
	struct incstack_tree machine = {.traces = &m1};
	const struct incstack_heap_tree heap = {.traces = &h1};
	const struct incstack_mixed_tree tree = {&machine, &heap};
	ck_assert_int_eq(
		incstack_profile_add_mixed_tree(profile, &tree, name_mixed, NULL, &profile), 0);
}

START_TEST(test_two_stacks)
{
	struct incstack_heap_object e = OBJECT(NULL, 'e', 1, BASE);
	struct incstack_heap_object a = OBJECT(&e, 35, 0, INCSTACK_MIXED_ANCHOR);
	struct incstack_heap_object f = OBJECT(&a, 'f', 1, 0), g = OBJECT(&f, 'g', 1, 0);
	struct incstack_heap_object k = OBJECT(&a, 'k', 1, 0);
	add_mixed(&g, &f);
	expect_folded("e;O;f;g;I 1\ne;O;f;I 2\n");
	ck_assert_uint_eq(described, 6);
	add_mixed(&g, &k);
	expect_folded("e;O;f;g;I 2\ne;O;f;I 2\ne;O;k;I 2\n");
}
END_TEST

START_TEST(test_two_stacks_that_do_not_fit)
{
	struct incstack_heap_object e = OBJECT(NULL, 'e', 1, BASE);
	struct incstack_heap_object a = OBJECT(&e, 99, 0, INCSTACK_MIXED_ANCHOR);
	struct incstack_heap_object f = OBJECT(&a, 'f', 1, 0);
	struct incstack_heap_object c =
		OBJECT(NULL, 39, 0, INCSTACK_MIXED_ANCHOR | INCSTACK_HEAP_TRUNCATED);
	struct incstack_heap_object h = OBJECT(&c, 'h', 1, 0);
	add_mixed(&f, &h);
	expect_folded("[order unknown];e;f;O;L;I 1\n[truncated];O;h;I 2\n");
	outer.flags = INCSTACK_OBJECT_TRUNCATED;
	add_mixed(&e, &e);
	expect_folded("[order unknown];e;f;O;L;I 1\n[truncated];O;h;I 2\n[truncated];e;O;L;I 3\n");
	outer.flags = INCSTACK_OBJECT_BASE;
}
END_TEST

START_TEST(test_frames_shared_with_a_trace_that_does_not_fit)
{
	struct incstack_heap_object e = OBJECT(NULL, 'e', 1, BASE);
	struct incstack_heap_object bad = OBJECT(&e, 99, 0, INCSTACK_MIXED_ANCHOR);
	struct incstack_heap_object good = OBJECT(&e, 35, 0, INCSTACK_MIXED_ANCHOR);
	struct incstack_heap_object f = OBJECT(&bad, 'f', 1, 0), g = OBJECT(&good, 'g', 1, 0);
	add_mixed(&f, &g);
	expect_folded("[order unknown];e;f;O;L;I 1\ne;O;g;I 2\n");
}
END_TEST

START_TEST(test_bad_arguments)
{
	const struct incstack_heap_tree heap = {.traces = NULL};
	const struct incstack_mixed_tree mixed = {NULL, NULL};
	ck_assert_int_eq(incstack_profile_add_heap_tree(NULL, &heap, NULL, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_add_heap_tree(profile, NULL, NULL, NULL),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_add_heap_tree(profile, &heap, NULL, NULL), 0);
	ck_assert_int_eq(incstack_profile_add_mixed_tree(NULL, &mixed, NULL, NULL, NULL),
			 INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_profile_add_mixed_tree(profile, &mixed, NULL, NULL, NULL),
			 INCSTACK_EINVAL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("profile_heap");
	TCase *heap = tcase_create("heap"), *mixed = tcase_create("mixed");
	tcase_add_checked_fixture(heap, setup, teardown);
	tcase_add_checked_fixture(mixed, setup, teardown);
	tcase_add_test(heap, test_shared_objects_are_described_once);
	tcase_add_test(heap, test_frames_that_look_alike);
	tcase_add_test(heap, test_old_of_another_trace);
	tcase_add_test(heap, test_all_is_left_out);
	tcase_add_test(heap, test_frames_without_a_description);
	tcase_add_test(mixed, test_two_stacks);
	tcase_add_test(mixed, test_two_stacks_that_do_not_fit);
	tcase_add_test(mixed, test_frames_shared_with_a_trace_that_does_not_fit);
	tcase_add_test(mixed, test_bad_arguments);
	suite_add_tcase(suite, heap);
	suite_add_tcase(suite, mixed);
	return run_suite(suite);
}
