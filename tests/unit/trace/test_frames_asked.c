/* SPDX-License-Identifier: MIT
 *
 * Tests which functions the frame iterator calls where code was interrupted, and what it refuses: a
 * stack with an operation in progress, and bad arguments.
 */
#include <pthread.h>
#include <setjmp.h>

#include "run_suite.h"
#include "shown_frames.h"

enum { SIZE = sizeof(uintptr_t), PAGE = 4096, TOP = SHOWN_TOP };

/* ---- whom it asks --------------------------------------------------------------------- */

static unsigned asked, asked_quickly, asked_in_handler, decoded_in_handler;

static int count_find_rule(void *context, uintptr_t address, struct incstack_rule *rule)
{
	asked++;
	return hand_find_rule(context, address, rule);
}

static int count_quickly(void *context, uintptr_t address, struct incstack_rule *rule)
{
	asked_quickly++;
	return hand_find_rule(context, address, rule);
}

static int count_in_handler(void *context, uintptr_t address, struct incstack_rule *rule)
{
	asked_in_handler++;
	return hand_find_rule(context, address, rule);
}

static int decode_in_handler(void *context, const struct incstack_frame *frame,
			     struct incstack_virtual_frame *out, int max)
{
	decoded_in_handler++;
	return hand_decode(context, frame, out, max);
}

static int decode_never(void *context, const struct incstack_frame *frame,
			struct incstack_virtual_frame *out, int max)
{
	(void)context;
	(void)frame;
	(void)out;
	ck_abort_msg("decode was called for %d frames", max);
	return 0;
}

static void open_counting(bool quickly, bool in_handler, bool decodes)
{
	struct incstack_embedder embedder = hand_embedder();
	embedder.code.find_rule = count_find_rule;
	embedder.code.find_rule_quickly = quickly ? count_quickly : NULL;
	embedder.signals.find_rule = in_handler ? count_in_handler : NULL;
	embedder.code.decode = decode_never;
	embedder.signals.decode = decodes ? decode_in_handler : NULL;
	hand_open_with((struct incstack_options){.distance = 1}, &embedder);
	asked = asked_quickly = asked_in_handler = decoded_in_handler = 0;
}

/* Shows frame n as one that was not decoded. */
static void shows_raw(unsigned n)
{
	ck_assert_int_eq(incstack_frames_next(&frames), 1);
	ck_assert_uint_eq(frames.function, hand_pc(n));
	ck_assert_uint_eq(frames.kind, INCSTACK_KIND_UNKNOWN);
}

START_TEST(interrupted_asks_nobody_else)
{
	open_counting(true, true, false);
	begin_at(TOP, INCSTACK_TOP_INTERRUPTED);
	for (unsigned n = TOP + 1; n-- > 0;)
		shows_raw(n);
	ends(0);
	ck_assert_uint_eq(asked + asked_quickly, 0);
	ck_assert_uint_eq(asked_in_handler, TOP + 1);
	hand_close();
}
END_TEST

START_TEST(interrupted_asks_quickly)
{
	open_counting(true, false, true);
	begin_at(TOP, INCSTACK_TOP_INTERRUPTED);
	shows_all(TOP);
	ck_assert_uint_eq(asked, 0);
	ck_assert_uint_eq(asked_quickly, TOP + 1);
	ck_assert_uint_eq(decoded_in_handler, TOP + 1);
	hand_close();
}
END_TEST

/* What is missing there is learned by the next walk from a top that was not interrupted. */
START_TEST(interrupted_misses_rules)
{
	open_counting(false, false, true);
	begin_at(TOP, INCSTACK_TOP_INTERRUPTED);
	shows(TOP);
	ends(INCSTACK_EUNWIND);
	ck_assert_uint_eq(asked, 0);
	begin_at(TOP, 0);
	ck_assert_uint_eq(asked, 1);
	begin_at(TOP, INCSTACK_TOP_INTERRUPTED);
	shows(TOP);
	shows(TOP - 1);
	ends(INCSTACK_EUNWIND);
	hand_close();
}
END_TEST

/* ---- operations on the stack ------------------------------------------------------------ */

static jmp_buf outside;
static bool jumps;

static int decode_and_walk(void *context, const struct incstack_frame *frame,
			   struct incstack_virtual_frame *out, int max)
{
	const struct incstack_top top = hand_top(TOP, 0);
	struct incstack_frames own;
	if (jumps)
		longjmp(outside, 1);
	ck_assert_int_eq(
		incstack_frames_begin(&own, &(struct incstack_frames_place){.stack = hand.s}, &top),
		INCSTACK_EBUSY);
	ck_assert_int_eq(incstack_frames_next(&own), INCSTACK_EBUSY);
	return hand_decode(context, frame, out, max);
}

START_TEST(refuses_a_busy_stack)
{
	struct incstack_embedder embedder = hand_embedder();
	embedder.code.decode = decode_and_walk;
	hand_open_with((struct incstack_options){.distance = 1}, &embedder);
	begin_at(TOP, 0);
	hand_sample(TOP);
	hand_all_complete();
	hand_close();
}
END_TEST

static struct incstack_stack *left;

static void leave_operation(uintptr_t low, uintptr_t high)
{
	const struct incstack_top top = hand_top(3, 0);
	ck_assert_int_eq(incstack_stack_create(hand.rt, low, high, &left), 0);
	jumps = true;
	if (setjmp(outside) == 0)
		incstack_stack_sample(left, 0, 1, &top);
	jumps = false;
	ck_assert(incstack__stack_is_busy(left));
}

static void walk_from(uintptr_t sp, int result)
{
	const struct incstack_top top = {.pc = hand_pc(3), .sp = sp};
	ck_assert_int_eq(incstack_frames_begin(
				 &frames, &(struct incstack_frames_place){.stack = left}, &top),
			 result);
}

static void *walk_elsewhere(void *sp)
{
	walk_from((uintptr_t)sp, INCSTACK_EBUSY);
	return NULL;
}

/* The operation was left by a jump. Frames that are older than it may run, younger ones not.
 * Another thread cannot know whose operation it was. The same holds for an operation that began on
 * another stack. */
START_TEST(walks_after_a_left_operation)
{
	struct incstack_embedder embedder = hand_embedder();
	const uintptr_t high = (uintptr_t)__builtin_frame_address(0) + PAGE;
	pthread_t thread;
	embedder.code.decode = decode_and_walk;
	hand_open_with((struct incstack_options){.distance = 1}, &embedder);
	hand.rules[3].flags = INCSTACK_RULE_DECODE_NOW;
	leave_operation(high - 64 * PAGE, high);
	walk_from(high - 60 * PAGE, INCSTACK_EBUSY);
	walk_from(high - SIZE, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, walk_elsewhere, (void *)(high - SIZE)), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	incstack_stack_abandon(left);
	leave_operation(high, high + PAGE);
	walk_from(high + PAGE - SIZE, INCSTACK_EBUSY);
	incstack_stack_abandon(left);
	hand_close();
}
END_TEST

/* ---- room for rules ------------------------------------------------------------------------ */

/* Walks in a runtime without stacks. Returns how many rules were asked for. */
static unsigned asked_in(struct incstack_runtime *alone)
{
	const struct incstack_top top = hand_top(TOP, 0);
	const struct incstack_frames_place place = {
		.runtime = alone, .low = (uintptr_t)hand.words, .high = hand_high()};
	asked = 0;
	ck_assert_int_eq(incstack_frames_begin(&frames, &place, &top), 0);
	while (incstack_frames_next(&frames) > 0)
		continue;
	return asked;
}

START_TEST(keeps_rules_where_there_is_room)
{
	struct incstack_runtime *alone;
	struct incstack_embedder embedder = hand_embedder();
	embedder.code.find_rule = count_find_rule;
	const struct incstack_options options = {.size = sizeof(options), .embedder = &embedder};
	hand_open((struct incstack_options){.distance = 1});
	ck_assert_int_eq(incstack_runtime_create(&options, &alone), 0);
	const unsigned all = asked_in(alone);
	ck_assert_uint_gt(all, TOP);
	ck_assert_uint_eq(asked_in(alone), all);
	ck_assert_int_eq(incstack_runtime_reserve(alone), 0);
	ck_assert_uint_eq(asked_in(alone), all);
	ck_assert_uint_eq(asked_in(alone), 0);
	ck_assert_int_eq(incstack_runtime_reserve(NULL), INCSTACK_EINVAL);
	incstack_runtime_destroy(alone);
	hand_close();
}
END_TEST

/* ---- bad arguments ------------------------------------------------------------------------ */

START_TEST(refuses_bad_arguments)
{
	struct incstack_top top = hand_top(TOP, 0);
	hand_open((struct incstack_options){.distance = 1});
	const struct incstack_frames_place place = {.stack = hand.s};
	const struct incstack_frames_place anywhere = {.runtime = hand.rt};
	const struct incstack_frames_place inverted = {.runtime = hand.rt, .low = 2, .high = 1};
	const struct incstack_frames_place nowhere = {0};
	ck_assert_int_eq(incstack_frames_next(NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_frames_begin(NULL, &place, &top), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_frames_begin(NULL, &anywhere, &top), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_frames_begin(&frames, &inverted, &top), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_frames_begin(&frames, &nowhere, &top), INCSTACK_EINVAL);
	ends(INCSTACK_EINVAL);
	begin_at(TOP, 0);
	shows(TOP);
	ck_assert_int_eq(incstack_frames_begin(&frames, &place, NULL), INCSTACK_EINVAL);
	ends(INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_frames_begin(&frames, NULL, &top), INCSTACK_EINVAL);
	top.sp++;
	ck_assert_int_eq(incstack_frames_begin(&frames, &place, &top), INCSTACK_EINVAL);
	top = hand_top(TOP, INCSTACK_TOP_DECODE_NOW);
	ck_assert_int_eq(incstack_frames_begin(&frames, &place, &top), INCSTACK_EINVAL);
	top = hand_top(TOP, 0);
	top.pc = 0;
	ck_assert_int_eq(incstack_frames_begin(&frames, &anywhere, &top), INCSTACK_EINVAL);
	ends(INCSTACK_EINVAL);
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frames, asked and refused");
	TCase *tc = tcase_create("whom it asks");
	tcase_add_test(tc, interrupted_asks_nobody_else);
	tcase_add_test(tc, interrupted_asks_quickly);
	tcase_add_test(tc, interrupted_misses_rules);
	tcase_add_test(tc, keeps_rules_where_there_is_room);
	suite_add_tcase(suite, tc);
	tc = tcase_create("what it refuses");
	tcase_add_test(tc, refuses_a_busy_stack);
	tcase_add_test(tc, walks_after_a_left_operation);
	tcase_add_test(tc, refuses_bad_arguments);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
