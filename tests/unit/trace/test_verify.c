/* SPDX-License-Identifier: MIT
 *
 * Tests that the checks of the invariants can fail: each invariant is violated by hand, and so
 * is the agreement of the fast walk with the general one.
 */
#include "trace/barrier.h"
#include "trace/fast_walk.h"
#include "trace/verify.h"
#include "hand_made.h"
#include "run_suite.h"

enum { TOP = 20, OUTER = 10, MOST = 64 };

/* Two known objects, each with its barrier: `newest`, and behind it `outer`. */
static object *newest, *outer;

static void open_two(void)
{
	hand_open((struct incstack_options){.distance = 1});
	hand_sample(OUTER);
	hand_sample(TOP);
	newest = hand.s->newest;
	outer = (object *)newest->parent;
	ck_assert(newest->flags & OBJECT_BARRIER && outer->flags & OBJECT_BARRIER);
	ck_assert_ptr_null(outer->parent);
	ck_assert_int_eq(incstack__stack_verify(hand.s), 0);
}

static void close_two(void)
{
	ck_assert_int_eq(incstack__stack_verify(hand.s), 0);
	hand_all_complete();
	hand_close();
}

/* Violation `number` is noticed with `place` at another value, also by the short check of debug
 * builds, and not any more when the old value is back. */
#define NOTICED(number, place, value) \
	do { \
		__typeof__(place) *const at_ = &(place), was_ = *at_; \
		*at_ = (__typeof__(was_))(value); \
		ck_assert_int_eq(incstack__stack_verify(hand.s), number); \
		ck_assert_int_eq(incstack__broken(hand.s, MOST), (number) == 2 ? 0 : (number)); \
		*at_ = was_; \
		ck_assert_int_eq(incstack__stack_verify(hand.s), 0); \
	} while (0)

START_TEST(chain)
{
	open_two();
	NOTICED(1, newest->address, hand.s->low);
	NOTICED(1, newest->address, hand.s->high + 8);
	NOTICED(1, newest->address, outer->address + 8);
	NOTICED(1, outer->address, hand.s->high + 8);
	NOTICED(2, *object_slot(outer), hand_pc(OUTER - 1));
	NOTICED(3, hand.s->newest_thunk, 1);
	NOTICED(5, outer->flags, outer->flags & ~(uint32_t)OBJECT_BARRIER);
	close_two();
}
END_TEST

START_TEST(records_of_barriers)
{
	open_two();
	const uint32_t number = outer->flags >> OBJECT_SHIFT;
	NOTICED(4, barrier_of(number)->object, newest);
	NOTICED(4, thunk_cell(thunk_address(number))->stack, NULL);
	close_two();
}
END_TEST

START_TEST(traces)
{
	open_two();
	trace *second = (trace *)(*first_trace(hand.s))->next;
	NOTICED(6, second->top, NULL);
	object *top = (object *)second->top;
	NOTICED(6, top->flags, top->flags & ~(uint32_t)INCSTACK_OBJECT_FILLED);
	close_two();
}
END_TEST

/* Objects beyond the `most` youngest are not checked. */
START_TEST(only_the_youngest)
{
	open_two();
	const uint32_t number = outer->flags >> OBJECT_SHIFT;
	const object was = *outer;
	const struct barrier record = *barrier_of(number);
	for (int i = 0; i < 4; i++) {
		static const int broken[] = {1, 4, 5, 6};
		trace *second = (trace *)(*first_trace(hand.s))->next;
		const object *top = second->top;
		if (i == 0)
			outer->address = hand.s->high + 8;
		else if (i == 1)
			barrier_of(number)->object = newest;
		else if (i == 2)
			outer->flags &= ~(uint32_t)OBJECT_BARRIER;
		else
			second->top = NULL;
		ck_assert_int_eq(incstack__broken(hand.s, 1), 0);
		ck_assert_int_eq(incstack__broken(hand.s, 2), broken[i]);
		*outer = was;
		*barrier_of(number) = record;
		second->top = top;
	}
	close_two();
}
END_TEST

/* ---- the fast walk ------------------------------------------------------------------------ */

enum { FRAMES = 3 };

/* What the fast walk makes of FRAMES callers of the top. Then one of them is made wrong. */
struct reached {
	object objects[FRAMES];
	struct fast_walk r;
	struct cursor at;
};

static struct reached reach_from_top(void)
{
	struct reached reached = {
		.at = {.pc = hand_pc(TOP), .sp = hand_sp(TOP), .fp = hand_fp(TOP)}};
	for (unsigned i = 0; i < FRAMES; i++) {
		reached.objects[i].function = hand_pc(TOP - 1 - i);
		reached.objects[i].address = hand_sp(TOP - 1 - i);
	}
	reached.r.fp = hand_fp(TOP - FRAMES);
	return reached;
}

static bool agrees(struct reached reached)
{
	return incstack__fast_walk_agrees(hand.s, reached.at, reached.objects,
					  reached.objects + FRAMES, &reached.r.fp);
}

START_TEST(fast_walk_is_compared)
{
	struct reached wrong;
	hand_open((struct incstack_options){.mode = INCSTACK_MODE_FULL});
	hand_sample(TOP); /* rules are learned */
	ck_assert(agrees(reach_from_top()));
	for (int i = 0; i < FRAMES; i++) {
		wrong = reach_from_top();
		wrong.objects[i].function++;
		ck_assert(!agrees(wrong));
		wrong = reach_from_top();
		wrong.objects[i].address += 8;
		ck_assert(!agrees(wrong));
	}
	wrong = reach_from_top();
	wrong.r.fp += 8;
	ck_assert(!agrees(wrong));
	hand_all_complete();
	hand_close();
}
END_TEST

/* A frame that the fast walk must have left to the general one. */
START_TEST(fast_walk_took_what_it_must_not)
{
	const struct incstack_rule rules[] = {hand_deref_rule, {.kind = INCSTACK_RULE_END}};
	hand_open((struct incstack_options){.mode = INCSTACK_MODE_FULL});
	hand.rules[TOP - 1] = rules[_i];
	hand_sample(TOP);
	ck_assert(!agrees(reach_from_top()));
	/* If the rule has been forgotten since, there is nothing to compare with. */
	ck_assert_int_eq(incstack_runtime_code_unloading(hand.rt, NULL, hand_pc(TOP - 1) - 8,
							 hand_pc(TOP - 1)),
			 0);
	ck_assert(agrees(reach_from_top()));
	incstack_tree_release(hand_retrieve());
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verify");
	TCase *tests = tcase_create("what is violated is noticed");
	tcase_add_test(tests, chain);
	tcase_add_test(tests, records_of_barriers);
	tcase_add_test(tests, traces);
	tcase_add_test(tests, only_the_youngest);
	tcase_add_test(tests, fast_walk_is_compared);
	tcase_add_loop_test(tests, fast_walk_took_what_it_must_not, 0, 2);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
