/* SPDX-License-Identifier: MIT
 *
 * The comparison of the check mode: it notices every kind of difference.
 */
#include "../seen.h"
#include "run_suite.h"

enum { KIND = 3, FRAMES = 3 };
#define MASK ((UINT64_C(1) << 56) - 1)

static const struct incstack__seen_frame truth[FRAMES] = {{11, 4, 0}, {12, 8, 1}, {13, -1, 0}};

static struct incstack_frame_object objects[FRAMES];
static struct incstack_trace trace;

/* A tree with one trace that equals the truth. */
static struct incstack_tree make(void)
{
	for (int i = 0; i < FRAMES; i++) {
		objects[i] = (struct incstack_frame_object){
			.parent = i + 1 < FRAMES ? &objects[i + 1] : NULL,
			.function = truth[i].method | (uint64_t)KIND << 56,
			.position = truth[i].bci,
			.flags = INCSTACK_OBJECT_FILLED |
				 (truth[i].is_virtual ? INCSTACK_OBJECT_VIRTUAL : 0u)};
	}
	objects[FRAMES - 1].flags |= INCSTACK_OBJECT_BASE;
	trace = (struct incstack_trace){.top = objects};
	return (struct incstack_tree){.traces = &trace, .count = 1};
}

static struct incstack__seen_result compare(const struct incstack_tree *tree, uint32_t count)
{
	struct incstack__seen seen;
	struct incstack__seen_result r;
	incstack__seen_init(&seen);
	struct incstack__seen_frame *frames = incstack__seen_begin(&seen, 7, count);
	for (uint32_t i = 0; i < count; i++)
		frames[i] = truth[i];
	incstack__seen_compare(&seen, tree, 7, MASK, &r);
	ck_assert_uint_eq(r.compared, 1);
	ck_assert_ptr_null(seen.first);
	return r;
}

START_TEST(equal_traces_match)
{
	struct incstack_tree tree = make();
	ck_assert_uint_eq(compare(&tree, FRAMES).mismatches, 0);
}
END_TEST

START_TEST(each_difference_counts)
{
	struct incstack_tree tree = make();
	objects[1].function++;
	struct incstack__seen_result r = compare(&tree, FRAMES);
	ck_assert_uint_eq(r.mismatches, 1);
	ck_assert_uint_eq(r.frame, 1);
	ck_assert_uint_eq(r.expected.method, 12);
	ck_assert_uint_eq(r.traced.method, 13);
	tree = make();
	objects[2].position = 0;
	ck_assert_uint_eq(compare(&tree, FRAMES).frame, 2);
	tree = make();
	objects[1].flags = INCSTACK_OBJECT_FILLED;
	ck_assert_uint_eq(compare(&tree, FRAMES).mismatches, 1);
	tree = make();
	r = compare(&tree, FRAMES - 1);
	ck_assert_uint_eq(r.mismatches, 1);
	ck_assert_uint_eq(r.expected.method, 0);
}
END_TEST

START_TEST(only_a_truncated_trace_may_be_shorter)
{
	struct incstack_tree tree = make();
	objects[1].parent = NULL;
	struct incstack__seen_result r = compare(&tree, FRAMES);
	ck_assert_uint_eq(r.mismatches, 1);
	ck_assert_uint_eq(r.frame, 2);
	ck_assert_uint_eq(r.traced.method, 0);
	objects[1].flags |= INCSTACK_OBJECT_TRUNCATED;
	ck_assert_uint_eq(compare(&tree, FRAMES).mismatches, 0);
}
END_TEST

START_TEST(samples_without_a_record_are_passed)
{
	struct incstack_tree tree = make();
	struct incstack__seen seen;
	struct incstack__seen_result r;
	struct incstack_trace more = {.top = objects};
	trace.next = &more;
	incstack__seen_init(&seen);
	incstack__seen_begin(&seen, 2, 0);
	struct incstack__seen_frame *frames = incstack__seen_begin(&seen, 4, FRAMES);
	for (int i = 0; i < FRAMES; i++)
		frames[i] = truth[i];
	incstack__seen_begin(&seen, 9, 0);
	incstack__seen_compare(&seen, &tree, 3, MASK, &r);
	ck_assert_uint_eq(r.compared, 1);
	ck_assert_uint_eq(r.mismatches, 0);
	ck_assert_ptr_nonnull(seen.first);
	incstack__seen_drop(&seen);
	ck_assert_ptr_null(seen.first);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("check mode");
	TCase *tc = tcase_create("check mode");
	tcase_add_test(tc, equal_traces_match);
	tcase_add_test(tc, each_difference_counts);
	tcase_add_test(tc, only_a_truncated_trace_may_be_shorter);
	tcase_add_test(tc, samples_without_a_record_are_passed);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
