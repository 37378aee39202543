/* SPDX-License-Identifier: MIT
 *
 * Tests what happens when no thunk is left for a barrier: in a sample, in a return, in a
 * handler's sample, on the fast paths and on the general ones. The walk continues, every trace
 * is complete, no skeleton keeps a gap without a barrier, and barriers are planted again when
 * there are thunks.
 */
#include "hand_made.h"
#include "run_suite.h"
#include "simulated.h"

enum { STEPS = 8000, TOP = 40, FRAMES = TOP + 1, UNUSUAL = 8, LIMITS = 2 };

/* ---- at random ----------------------------------------------------------------------- */

START_TEST(at_random)
{
	struct incstack_options options = sim_variant(_i % SIM_PATCHED);
	options.thunk_limit = 1 + (uint32_t)(_i / SIM_PATCHED % LIMITS);
	sim.usual = _i / SIM_PATCHED / LIMITS;
	ck_assert_int_eq(sim_open(options), 0);
	for (int i = 0; i < STEPS; i++) {
		if (sim.pending == 0)
			ck_assert_int_eq(incstack_stack_reserve(sim.s, 4 << 20), 0);
		sim_step();
		if (i % 8 == 0)
			ck_assert_int_eq(incstack__stack_verify(sim.s), 0);
		if (sim.pending >= SIM_TRACES)
			ck_assert_int_eq(sim_retrieve(), 0);
	}
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_nothing_is_lost();
	ck_assert(_i % SIM_PATCHED == 3 || sim_stats().returns > 0); /* not 30 frames further */
	sim_close();
}
END_TEST

/* ---- one frame away from the quick way ------------------------------------------------ */

static struct incstack_stack *other;

/* Another stack has the only thunk. */
static void take_the_thunk(void)
{
	struct incstack_stack *s = hand.s;
	const struct incstack_top top = hand_top(HAND_FRAMES - 4, 0);
	hand.s = other = hand_stack();
	ck_assert_int_eq(incstack_stack_sample(other, 0, 1, &top), 0);
	ck_assert_uint_eq(hand_stats().planted, 1);
	hand.s = s;
}

static void give_the_thunk_back(void)
{
	incstack_stack_destroy(other);
}

static void open_with_limit(uint32_t limit, uint32_t distance)
{
	hand_open((struct incstack_options){.thunk_limit = limit, .distance = distance});
}

/* Distances up to 5, with the unusual frame at each place below the top. */
static void open_nth(int n)
{
	open_with_limit(1, (unsigned)(n / UNUSUAL) + 1);
	hand.rules[TOP - 1 - n % UNUSUAL] = hand_deref_rule;
}
enum { PLACES = 6 * UNUSUAL };

START_TEST(in_a_sample)
{
	open_nth(_i);
	take_the_thunk();
	hand_sample(TOP);
	hand_sample(TOP);
	ck_assert_uint_eq(hand_stats().planted, 0);
	ck_assert_uint_eq(hand_stats().no_thunk, 2); /* requested once in a walk */
	ck_assert_uint_eq(hand_stats().walked, 2 * FRAMES);
	hand_all_complete();
	give_the_thunk_back();
	hand_close();
}
END_TEST

/* Rules are learned where find_rule may be called. */
static void learn_rules(void)
{
	struct incstack_stack *s = hand_stack();
	const struct incstack_top top = hand_top(TOP, INCSTACK_TOP_EXACT);
	ck_assert_int_eq(incstack_stack_set_mode(s, INCSTACK_MODE_FULL), 0);
	ck_assert_int_eq(incstack_stack_sample(s, 0, 1, &top), 0);
	incstack_stack_destroy(s);
}

START_TEST(in_the_sample_of_a_handler)
{
	const struct incstack_top top =
		hand_top(TOP, INCSTACK_TOP_INTERRUPTED | INCSTACK_TOP_EXACT);
	open_nth(_i);
	learn_rules();
	take_the_thunk();
	ck_assert_int_eq(incstack_stack_sample(hand.s, TOP, 1, &top), 0);
	hand.samples++;
	ck_assert_uint_eq(hand_stats().planted, 0);
	ck_assert_uint_eq(hand_stats().no_thunk, 1);
	hand_all_complete();
	give_the_thunk_back();
	hand_close();
}
END_TEST

/* After a handler's sample that was refused, which the next sample takes care of. */
START_TEST(in_a_careful_sample)
{
	const struct incstack_top top =
		hand_top(TOP, INCSTACK_TOP_INTERRUPTED | INCSTACK_TOP_EXACT);
	open_nth(_i);
	take_the_thunk();
	for (uint64_t i = 1; i <= 3; i++) {
		ck_assert_int_eq(incstack_runtime_code_unloading(hand.rt, NULL, 1, UINTPTR_MAX), 0);
		ck_assert_int_eq(incstack_stack_sample(hand.s, TOP, 1, &top), INCSTACK_EUNWIND);
		hand_sample(TOP);
		ck_assert_uint_eq(hand_stats().lost_unwind, i);
		ck_assert_uint_eq(hand_stats().no_thunk, i);
	}
	ck_assert_uint_eq(hand_stats().planted, 0);
	hand_all_complete();
	give_the_thunk_back();
	hand_close();
}
END_TEST

/* The only thunk is the one of the return. It may be handed on, but it is not free before the next
 * operation. */
START_TEST(in_a_return)
{
	unsigned refusals = 0;
	open_nth(_i);
	hand_sample(TOP);
	for (unsigned n = TOP; n > 0; n--) {
		uint64_t before = hand_stats().no_thunk, planted = hand_stats().planted;
		const uintptr_t pc = hand_pc(n - 1);
		ck_assert_uint_eq(hand_return(n), pc);
		ck_assert_int_eq(incstack__stack_verify(hand.s), 0);
		refusals += hand_stats().no_thunk > before;
		ck_assert_uint_le(hand_stats().no_thunk + hand_stats().planted,
				  before + planted + 1);
	}
	ck_assert_uint_le(refusals, 1);
	hand.samples = 1;
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(hand.s, &tree), 0);
	hand_shows_all(tree->traces->top, TOP);
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

/* All callers are known, none can be guarded, and the only thunk is requested once. After a
 * retrieve it is free, also for a handler's sample. */
START_TEST(in_a_return_among_known_frames)
{
	const struct incstack_top top =
		hand_top(TOP, INCSTACK_TOP_INTERRUPTED | INCSTACK_TOP_EXACT);
	open_with_limit(1, 1);
	learn_rules();
	hand_sample(TOP);
	hand_all_complete();
	ck_assert_uint_eq(hand_return(TOP), hand_pc(TOP - 1));
	ck_assert_uint_eq(hand_stats().no_thunk, 1);
	ck_assert_uint_eq(hand_stats().planted, 1);
	for (unsigned n = 1; n < TOP; n++)
		ck_assert(!hand_patched(n));
	hand_all_complete();
	*hand_slot(TOP) = hand_pc(TOP - 1); /* called again */
	ck_assert_int_eq(incstack_stack_sample(hand.s, TOP, 1, &top), 0);
	hand.samples++;
	ck_assert_uint_eq(hand_stats().planted, 2);
	hand_all_complete();
	hand_close();
}
END_TEST

/* The frame that was to get a barrier is the outermost. Its trace ends there, and does not
 * continue with earlier frames, which are gone. On the fast path, and behind a frame that is not
 * ordinary. */
START_TEST(at_the_outermost_frame)
{
	enum { OTHER = TOP + 10 };
	const unsigned base = OTHER - 1 - (unsigned)_i;
	open_with_limit(1, (unsigned)_i + 1);
	if (_i)
		hand.rules[OTHER] = hand_deref_rule;
	hand_sample(OTHER);
	ck_assert_int_eq(incstack_stack_forget(hand.s), 0); /* rules are learned */
	hand_lay_out();
	hand.samples = 1;
	hand_sample(TOP);
	*hand_slot(base) = 0;
	hand_sample(OTHER);
	ck_assert_uint_eq(hand_stats().planted, 2);
	ck_assert_uint_eq(hand_stats().no_thunk, 1);
	struct incstack_tree *tree = hand_retrieve();
	const struct incstack_frame_object *o = tree->traces->next->next->top;
	for (unsigned n = OTHER; n > base; n--, o = o->parent)
		ck_assert_uint_eq(o->function, n);
	ck_assert_uint_eq(o->function, base);
	ck_assert(o->flags & INCSTACK_OBJECT_BASE);
	ck_assert_ptr_null(o->parent);
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

/* The thunk of a return is free by the next operation, which may be the next exit. */
START_TEST(in_an_exit_after_a_return)
{
	enum { OUTER = TOP / 2, TARGET = OUTER / 2 };
	open_with_limit(2, 1);
	for (unsigned n = 1; n < HAND_FRAMES; n++)
		hand.rules[n] = hand_deref_rule; /* no fast path hands a thunk on */
	hand_sample(OUTER);
	hand_sample(TOP);
	ck_assert_uint_eq(hand_return(TOP), hand_pc(TOP - 1));
	ck_assert_uint_eq(hand_stats().planted, 2);
	ck_assert_uint_eq(hand_stats().no_thunk, 1);
	ck_assert_int_eq(incstack_stack_unwinding_to(hand.s, hand_sp(TARGET)), 0);
	ck_assert_uint_eq(hand_stats().unwound, 1);
	ck_assert_uint_eq(hand_stats().planted, 3);
	ck_assert_uint_eq(hand_stats().no_thunk, 1);
	ck_assert(hand_patched(TARGET));
	hand_all_complete();
	hand_close();
}
END_TEST

/* ---- stacks that the embedder walks ------------------------------------------------------ */

static int to_caller(void *context, void *identity, struct incstack_frame *frame)
{
	const uintptr_t *armed = identity;
	(void)context;
	if (frame->sp == 1)
		return 0;
	frame->sp--;
	frame->pc = hand_pc((unsigned)frame->sp);
	frame->flags = armed[frame->sp] ? INCSTACK_FRAME_ARMED : 0;
	return 1;
}

static int arm(void *context, void *identity, uintptr_t frame)
{
	uintptr_t *armed = identity;
	(void)context;
	ck_assert_uint_eq(armed[frame], 0);
	armed[frame] = 1;
	return 0;
}

static void disarm(void *context, void *identity, uintptr_t frame)
{
	uintptr_t *armed = identity;
	(void)context;
	ck_assert_uint_eq(armed[frame], 1);
	armed[frame] = 0;
}

/* Their barriers take numbers of thunks: without one no frame is armed, and no object stays
 * that was made for it. */
START_TEST(by_the_embedder)
{
	static uintptr_t armed[HAND_FRAMES];
	static const struct incstack_stack_walker walker = {sizeof(walker), to_caller, arm, disarm,
							    NULL};
	const struct incstack_embedder embedder = hand_embedder();
	struct incstack_tree *tree;
	hand_open_with((struct incstack_options){.thunk_limit = 1, .distance = (unsigned)_i + 1},
		       &embedder);
	incstack_stack_destroy(hand.s);
	ck_assert_int_eq(incstack_stack_create_embedder(hand.rt, &walker, armed, &hand.s), 0);
	take_the_thunk();
	const struct incstack_top top = {.pc = hand_pc(TOP), .sp = TOP};
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(incstack_stack_sample(hand.s, 0, 1, &top), 0);
		hand.samples++;
		ck_assert_uint_eq(hand_stats().planted, (uint64_t)i);
		tree = hand_retrieve();
		ck_assert_uint_eq(tree->objects, TOP);
		ck_assert_uint_eq(tree->truncated, 0);
		incstack_tree_release(tree);
		if (i == 0)
			give_the_thunk_back();
	}
	const uintptr_t frame = TOP - 1 - (uintptr_t)_i;
	ck_assert_uint_eq(armed[frame], 1);
	armed[frame] = 0; /* reported once */
	ck_assert_int_eq(incstack_stack_returned(hand.s, frame), 0);
	ck_assert_uint_eq(hand_stats().returns, 1);
	hand_close();
}
END_TEST

/* ---- what is counted ------------------------------------------------------------------- */

START_TEST(limit_is_exact)
{
	const uint32_t limit = 1 + (uint32_t)_i;
	open_with_limit(limit, 1);
	for (unsigned i = 1; i <= limit; i++) {
		hand_sample(8 * i);
		ck_assert_uint_eq(hand_stats().planted, i);
	}
	ck_assert_uint_eq(hand_stats().no_thunk, 0);
	hand_sample(8 * limit + 8);
	ck_assert_uint_eq(hand_stats().planted, limit);
	ck_assert_uint_eq(hand_stats().no_thunk, 1);
	hand_all_complete();
	hand_close();
}
END_TEST

/* For each way in which a stack can end. */
START_TEST(ended_stacks_have_no_thunks)
{
	open_with_limit(1, 1);
	for (int i = 0; i < 10; i++) {
		take_the_thunk();
		if (_i == 0)
			incstack_stack_destroy(other);
		else
			incstack_stack_abandon(other);
		hand_lay_out();
	}
	hand_close();
}
END_TEST

/* Long walks do not count as rent where no barrier could be had: the next sample that can plant one
 * does. */
START_TEST(barriers_come_back)
{
	open_with_limit(1, 0);
	ck_assert_int_eq(incstack_stack_reserve(hand.s, 1 << 20), 0);
	take_the_thunk();
	for (int i = 0; i < 3; i++)
		hand_sample(TOP);
	ck_assert_uint_eq(hand_stats().walked, 3 * FRAMES);
	give_the_thunk_back();
	hand_sample(TOP);
	ck_assert_uint_eq(hand_stats().planted, 1);
	hand_sample(TOP);
	ck_assert_uint_lt(hand_stats().walked, 4 * FRAMES);
	hand_all_complete();
	hand_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("thunk shortage");
	TCase *tests = tcase_create("no thunk is left");
	tcase_add_loop_test(tests, at_random, 0, 2 * LIMITS * SIM_PATCHED);
	tcase_add_loop_test(tests, in_a_sample, 0, PLACES);
	tcase_add_loop_test(tests, in_the_sample_of_a_handler, 0, PLACES);
	tcase_add_loop_test(tests, in_a_careful_sample, 0, PLACES);
	tcase_add_loop_test(tests, by_the_embedder, 0, 4);
	tcase_add_loop_test(tests, in_a_return, 0, PLACES);
	tcase_add_test(tests, in_a_return_among_known_frames);
	tcase_add_loop_test(tests, at_the_outermost_frame, 0, 2);
	tcase_add_test(tests, in_an_exit_after_a_return);
	tcase_add_loop_test(tests, limit_is_exact, 0, 4);
	tcase_add_loop_test(tests, ended_stacks_have_no_thunks, 0, 2);
	tcase_add_test(tests, barriers_come_back);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
