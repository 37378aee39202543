/* SPDX-License-Identifier: MIT
 *
 * Tests the frame iterator over stacks that only the embedder can walk.
 */
#include <incstack/frames.h>

#include "heap_frames.h"
#include "run_suite.h"

static struct incstack_frames frames;

static void shows(const struct node *n)
{
	struct incstack_virtual_frame out[2];
	const int count = decode_node(n, out);
	for (int i = 0; i < count; i++) {
		ck_assert_int_eq(incstack_frames_next(&frames), 1);
		ck_assert_uint_eq(frames.frame.sp, (uintptr_t)n);
		ck_assert_uint_eq(frames.frame.flags,
				  all_exact || n == top ? frames.frame.flags & INCSTACK_FRAME_EXACT
							: 0);
		ck_assert_uint_eq(frames.function, out[i].function);
		ck_assert_int_eq(frames.position, out[i].position);
		ck_assert_uint_eq(frames.kind, i + 1 < count ? INCSTACK_KIND_INLINED : 0);
	}
}

static void shows_all(int result)
{
	for (const struct node *n = top; n; n = n->caller) {
		shows(n);
		if (n == wall)
			break;
	}
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(incstack_frames_next(&frames), result);
}

static int begin(const struct incstack_top *from)
{
	const struct incstack_frames_place place = {.stack = s};
	return incstack_frames_begin(&frames, &place, from);
}

/* Barriers stay as they are. */
static void walk(const struct incstack_top *from)
{
	const uint64_t armed = armed_now;
	ck_assert_int_eq(begin(from), 0);
	shows_all(0);
	ck_assert_int_eq(begin(from), 0);
	shows_all(0);
	ck_assert_uint_eq(armed_now, armed);
}

START_TEST(random_program)
{
	tells_youngest = true;
	setup((unsigned)_i + 1, INCSTACK_MODE_PATCH);
	for (int i = 0; i < STEPS; i++) {
		step();
		if (record_count == TRACES)
			ck_assert_uint_eq(retrieve(), 0);
		const struct incstack_top from = {.sp = (uintptr_t)top,
						  .flags = INCSTACK_TOP_EXACT};
		if (i % 7 == 0)
			walk(i % 2 ? &from : NULL);
	}
	ck_assert_uint_eq(retrieve(), 0);
	ck_assert_uint_gt(arms, 0);
	teardown();
}
END_TEST

START_TEST(an_unknown_caller)
{
	setup(1, INCSTACK_MODE_PATCH);
	for (int i = 0; i < 9; i++)
		call();
	wall = top->caller->caller;
	const struct incstack_top from = {.sp = (uintptr_t)top};
	ck_assert_int_eq(begin(&from), 0);
	shows_all(INCSTACK_EUNWIND);
	wall = NULL;
	ck_assert_int_eq(begin(&from), 0);
	shows_all(0);
	teardown();
}
END_TEST

START_TEST(refuses)
{
	tells_youngest = _i;
	setup(1, INCSTACK_MODE_PATCH);
	const struct incstack_top interrupted = {.sp = (uintptr_t)top,
						 .flags = INCSTACK_TOP_INTERRUPTED};
	const struct incstack_top nowhere = {0};
	ck_assert_int_eq(begin(&interrupted), INCSTACK_EINVAL);
	ck_assert_int_eq(begin(&nowhere), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_frames_next(&frames), INCSTACK_EINVAL);
	ck_assert_int_eq(begin(NULL), _i ? 0 : INCSTACK_EINVAL);
	while (depth)
		pop();
	if (_i) { /* the stack is empty */
		for (int i = 0; i < 2; i++) {
			ck_assert_int_eq(begin(NULL), 0);
			ck_assert_int_eq(incstack_frames_next(&frames), 0);
		}
	}
	teardown();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frames by the embedder");
	TCase *tc = tcase_create("walk");
	tcase_add_loop_test(tc, random_program, 0, 3);
	tcase_add_test(tc, an_unknown_caller);
	tcase_add_loop_test(tc, refuses, 0, 2);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
