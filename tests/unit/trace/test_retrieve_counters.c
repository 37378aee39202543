/* SPDX-License-Identifier: MIT
 *
 * Tests that the counters of a stack and of its trees are exact: over several retrieves that
 * hand over the same callers, over retrieves that fail, and in each mode.
 */
#include "hand_made.h"
#include "run_suite.h"

enum { TOP = 20, UNKNOWN = 10, CHUNK = 512, CHUNKS = 32 };

static const uint32_t modes[] = {INCSTACK_MODE_PATCH, INCSTACK_MODE_VALIDATE, INCSTACK_MODE_FULL};

static void retrieve_and_expect(uint64_t count, uint64_t objects, uint64_t truncated)
{
	struct incstack_tree *tree = hand_retrieve();
	ck_assert_uint_eq(tree->count, count);
	ck_assert_uint_eq(tree->objects, objects);
	ck_assert_uint_eq(tree->truncated, truncated);
	incstack_tree_release(tree);
}

/* ---- what is truncated ------------------------------------------------------------------ */

/* The frames from the one above the top to the last that is known are handed over each time. The
 * last one is truncated, whether or not a sample led there. It was cut once. */
START_TEST(truncated_in_each_tree)
{
	const uint64_t callers = TOP - UNKNOWN;
	hand_open((struct incstack_options){.distance = (unsigned)_i + 1});
	hand.rules[UNKNOWN].kind = INCSTACK_RULE_NONE;
	for (int i = 0; i < 4; i++) {
		hand_sample(TOP);
		retrieve_and_expect(1, callers + 1, 1);
		ck_assert_uint_eq(hand_stats().truncated, 1);
	}
	hand_sample(TOP);
	hand_sample(TOP);
	retrieve_and_expect(2, callers + 2 + (uint64_t)_i, 1);
	ck_assert_uint_eq(hand_stats().truncated, 1);
	hand_close();
}
END_TEST

/* Without a barrier nothing beyond a cut is remembered: each trace has a cut of its own. */
START_TEST(truncated_without_barriers)
{
	const uint64_t frames = TOP - UNKNOWN + 1;
	hand_open((struct incstack_options){.distance = 1, .mode = modes[1 + _i]});
	hand.rules[UNKNOWN].kind = INCSTACK_RULE_NONE;
	for (uint64_t i = 1; i <= 4; i++) {
		hand_sample(TOP);
		hand_sample(TOP);
		retrieve_and_expect(2, 2 * frames, 2);
		ck_assert_uint_eq(hand_stats().truncated, 2 * i);
		ck_assert_uint_eq(hand_stats().walked, 2 * i * frames);
	}
	hand_close();
}
END_TEST

/* ---- what is shared, what is walked ------------------------------------------------------ */

/* By mode: frames that the first sample and the second walk. */
static const unsigned walks[][2] = {{1, 1}, {TOP + 1, 1}, {TOP + 1, TOP + 1}};

START_TEST(shared_and_walked)
{
	hand_open((struct incstack_options){.distance = 1, .mode = modes[_i]});
	hand_sample(TOP); /* not on the fast path: rules are unknown */
	ck_assert_uint_eq(hand_stats().shared, 0);
	ck_assert_uint_eq(hand_stats().walked, walks[_i][0]);
	hand_sample(TOP);
	ck_assert_uint_eq(hand_stats().shared, modes[_i] != INCSTACK_MODE_FULL);
	ck_assert_uint_eq(hand_stats().walked, walks[_i][0] + walks[_i][1]);
	hand_all_complete();
	hand_close();
}
END_TEST

/* On the fast path, first with no known frame, then with one. */
START_TEST(shared_quickly)
{
	hand_open((struct incstack_options){.distance = 1});
	struct incstack_stack *first = hand.s;
	hand_sample(TOP); /* rules are learned */
	hand.s = hand_stack();
	hand_lay_out();
	for (uint64_t i = 0; i < 3; i++) {
		hand_sample(TOP);
		ck_assert_uint_eq(hand_stats().samples, i + 1);
		ck_assert_uint_eq(hand_stats().shared, i);
		ck_assert_uint_eq(hand_stats().planted, 1);
		ck_assert_uint_eq(hand_stats().walked, i + 1);
	}
	hand_all_complete();
	incstack_stack_abandon(first);
	hand_close();
}
END_TEST

/* Returns on the fast path: one that plants a barrier again, and one that reaches a known frame. */
START_TEST(walked_in_returns)
{
	enum { DISTANCE = 2, BETWEEN = 2 };
	hand_open((struct incstack_options){.distance = DISTANCE + 1});
	hand_sample(TOP);
	hand_all_complete(); /* rules are learned */
	ck_assert_int_eq(incstack_stack_forget(hand.s), 0);
	hand_lay_out();
	hand_sample(TOP - BETWEEN);
	hand_sample(TOP);
	const unsigned barrier = TOP - DISTANCE;
	ck_assert(hand_patched(barrier) && hand_patched(barrier - BETWEEN));
	uint64_t walked = hand_stats().walked;
	ck_assert_uint_eq(hand_return(barrier), hand_pc(barrier - 1));
	ck_assert_uint_eq(hand_stats().walked, walked + BETWEEN);
	walked = hand_stats().walked;
	ck_assert_uint_eq(hand_return(barrier - BETWEEN), hand_pc(barrier - BETWEEN - 1));
	ck_assert_uint_eq(hand_stats().walked, walked + DISTANCE + 1);
	hand_all_complete();
	hand_close();
}
END_TEST

/* ---- bytes ------------------------------------------------------------------------------ */

static int frames_of_one;

static int decode_to_many(void *context, const struct incstack_frame *frame,
			  struct incstack_virtual_frame *out, int max)
{
	for (int i = 0; i < max; i++)
		hand_decode(context, frame, out + i, max);
	return frames_of_one;
}

/* A retrieve that fails for lack of memory changes nothing: the room up to the limit of the stack
 * is the same after any number of them. */
START_TEST(bytes_after_failed_retrieves)
{
	struct incstack_embedder embedder = hand_embedder();
	struct incstack_tree *tree;
	embedder.code.decode = decode_to_many;
	hand_open_with((struct incstack_options){.distance = (unsigned)_i + 1,
						 .chunk_bytes = CHUNK,
						 .stack_bytes = CHUNK * CHUNKS},
		       &embedder);
	ck_assert_int_eq(incstack_stack_reserve(hand.s, CHUNKS / 2 * CHUNK / 2), 0);
	const size_t live = hand.live;
	hand_sample(TOP);
	frames_of_one = INCSTACK_VIRTUAL_MAX;
	hand.no_memory = true;
	for (int i = 0; i < 50; i++) {
		ck_assert_int_eq(incstack_stack_retrieve(hand.s, &tree), INCSTACK_ENOMEM);
		ck_assert_int_eq(incstack__stack_verify(hand.s), 0);
	}
	hand.no_memory = false;
	ck_assert_uint_eq(hand.live, live);
	frames_of_one = 1;
	hand_all_complete();
	ck_assert_int_eq(incstack_stack_reserve(hand.s, CHUNKS * CHUNK / 4 * 3), 0);
	ck_assert_int_eq(incstack_stack_reserve(hand.s, CHUNKS * CHUNK), INCSTACK_ELIMIT);
	hand_close();
}
END_TEST

/* What was cut for lack of memory is not truncated: the next retrieve completes it. */
START_TEST(truncated_after_failed_retrieves)
{
	struct incstack_tree *tree;
	hand_open((struct incstack_options){.distance = 1, .chunk_bytes = CHUNK});
	hand_sample(TOP);
	hand.no_memory = true;
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(incstack_stack_retrieve(hand.s, &tree), INCSTACK_ENOMEM);
		ck_assert_int_eq(incstack__stack_has_gaps(hand.s), 1);
		ck_assert_uint_eq(hand_stats().truncated, 0);
	}
	hand.no_memory = false;
	hand_all_complete();
	hand_close();
}
END_TEST

/* What lies beyond a cut is completed for its own traces. If there is no memory for this either, it
 * is truncated, because no later walk comes to it. */
START_TEST(truncated_behind_a_cut)
{
	enum { OUTER = 10, BETWEEN = 15 };
	struct incstack_tree *tree;
	hand_open((struct incstack_options){.distance = 1, .chunk_bytes = CHUNK});
	hand.rules[BETWEEN].kind = INCSTACK_RULE_NONE;
	hand_sample(OUTER);
	hand_sample(TOP);
	hand.no_memory = true;
	ck_assert_int_eq(incstack_stack_retrieve(hand.s, &tree), INCSTACK_ENOMEM);
	hand.no_memory = false;
	tree = hand_retrieve();
	ck_assert_uint_eq(tree->truncated, 2);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		const struct incstack_frame_object *o = t->top;
		for (; o->parent; o = o->parent)
			ck_assert(!(o->flags & INCSTACK_OBJECT_GAP));
		ck_assert(!(o->flags & INCSTACK_OBJECT_GAP));
		ck_assert(o->flags & INCSTACK_OBJECT_TRUNCATED);
	}
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("retrieve counters");
	TCase *tests = tcase_create("exact");
	tcase_add_loop_test(tests, truncated_in_each_tree, 0, 4);
	tcase_add_loop_test(tests, truncated_without_barriers, 0, 2);
	tcase_add_loop_test(tests, shared_and_walked, 0, 3);
	tcase_add_test(tests, shared_quickly);
	tcase_add_test(tests, walked_in_returns);
	tcase_add_loop_test(tests, bytes_after_failed_retrieves, 0, 3);
	tcase_add_test(tests, truncated_after_failed_retrieves);
	tcase_add_test(tests, truncated_behind_a_cut);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
