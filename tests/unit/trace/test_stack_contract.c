/* SPDX-License-Identifier: MIT
 *
 * Tests the functions for code that changes a stack with barriers on it: rewritten return
 * addresses, frames that moved, frames that are about to be popped, slots that another stack has
 * patched, and code that is unloaded after its frames were left unannounced.
 */
#include <setjmp.h>

#include <incstack/native.h>

#include "hand_made.h"
#include "run_suite.h"
#include "sample_native.h"

enum { TOP = 20, RULES = 2 };
#define HANDLER ((uintptr_t)0x9000000)

/* With ordinary frames, and with frames that the fast paths cannot handle. */
static void open_by(int rules, uint32_t distance)
{
	hand_open((struct incstack_options){.distance = distance});
	for (unsigned n = 1; n < HAND_FRAMES && rules; n++)
		hand.rules[n] = hand_deref_rule;
}

static uintptr_t return_with(unsigned n, uintptr_t fp)
{
	uintptr_t word = *hand_slot(n);
	ck_assert(is_thunk(word));
	return incstack__returned(thunk_cell(word), fp, 0);
}

/* ---- rewritten return addresses --------------------------------------------------------- */

/* No barrier is planted where the caller's frame differs from what was captured: the frame further
 * out gets it. */
START_TEST(rewritten_slot_gets_no_barrier)
{
	open_by(_i, 1);
	hand_sample(TOP);
	hand_all_complete();
	ck_assert_int_eq(incstack_stack_slot_write(hand.s, hand_slot(TOP - 1), HANDLER), 0);
	ck_assert_uint_eq(*hand_slot(TOP - 1), HANDLER);
	ck_assert_uint_eq(hand_return(TOP), hand_pc(TOP - 1));
	ck_assert_uint_eq(*hand_slot(TOP - 1), HANDLER);
	ck_assert(hand_patched(TOP - 2));
	ck_assert_uint_eq(hand_return(TOP - 1), HANDLER);
	hand_sample(TOP - 2);
	ck_assert_uint_eq(hand_return(TOP - 2), hand_pc(TOP - 3));
	hand_all_complete();
	hand_close();
}
END_TEST

/* Through a barrier: the frame returns to the new address, the position stays. */
START_TEST(rewritten_behind_a_barrier)
{
	open_by(_i, 1);
	hand_sample(TOP);
	ck_assert_int_eq(incstack_stack_slot_write(hand.s, hand_slot(TOP), HANDLER), 0);
	ck_assert(hand_patched(TOP));
	ck_assert_uint_eq(incstack_slot_read(hand_slot(TOP)), HANDLER);
	ck_assert_uint_eq(hand_return(TOP), HANDLER);
	hand_all_complete();
	ck_assert_uint_eq(hand_stats().returns, 1);
	hand_close();
}
END_TEST

/* ---- frames that moved -------------------------------------------------------------------- */

/* Frame TOP - 1, whose callee's return and whose own return are both intercepted, moves
 * inside the room between its neighbours, and its old place is used for something else. */
START_TEST(moved_frame_with_its_own_barrier)
{
	enum { MOVED = TOP - 1 };
	const uintptr_t delta = (uintptr_t)0 - 16;
	const uintptr_t fp = hand_fp(MOVED) + delta;
	uintptr_t *const old = hand_slot(MOVED), *const new = (uintptr_t *)(fp + 8);
	struct incstack_tree *tree;
	open_by(_i, 1);
	hand_sample(MOVED);
	hand_sample(TOP);
	ck_assert(hand_patched(MOVED) && hand_patched(TOP));
	memmove((uintptr_t *)fp - 1, (uintptr_t *)hand_fp(MOVED) - 1, 3 * sizeof(uintptr_t));
	((uintptr_t *)fp)[-1] += delta; /* the CFA, for the rule that looks there */
	*(uintptr_t *)hand_fp(TOP) = fp;
	old[0] = old[-1] = 1;
	ck_assert_int_eq(incstack_stack_frame_moved(hand.s, (uintptr_t)old, (uintptr_t) new), 0);
	ck_assert_int_eq(incstack__stack_verify(hand.s), 0);

	tree = hand_retrieve();
	const struct incstack_frame_object *o = tree->traces->next->top;
	ck_assert_uint_eq(o->function, TOP);
	o = o->parent;
	ck_assert_uint_eq(o->function, MOVED);
	ck_assert_uint_eq(o->address, hand_sp(MOVED));
	o = o->parent;
	ck_assert_uint_eq(o->function, MOVED - 1);
	ck_assert_uint_eq(o->address, (uintptr_t)(new + 1));
	hand_shows_all(o->parent, MOVED - 2);
	ck_assert_uint_eq(tree->truncated, 0);
	incstack_tree_release(tree);

	ck_assert_uint_eq(return_with(TOP, fp), hand_pc(MOVED));
	ck_assert(is_thunk(*new));
	ck_assert_uint_eq(incstack_slot_read(new), hand_pc(MOVED - 1));
	hand_close();
}
END_TEST

/* ---- frames that are about to be popped --------------------------------------------------- */

/* The return address at sp itself will still be used. */
START_TEST(slot_at_the_target_is_not_popped)
{
	open_by(_i, 1);
	hand_sample(TOP);
	const uintptr_t slot = (uintptr_t)hand_slot(TOP), thunk = *hand_slot(TOP);
	ck_assert_int_eq(incstack_stack_unwinding_to(hand.s, slot), 0);
	ck_assert_uint_eq(hand_stats().unwound, 0);
	ck_assert_uint_eq(*hand_slot(TOP), thunk);
	ck_assert_uint_eq(hand_return(TOP), hand_pc(TOP - 1));
	ck_assert_uint_eq(hand_stats().returns, 1);
	ck_assert_int_eq(incstack_stack_unwinding_to(hand.s, hand_sp(TOP - 2)), 0);
	ck_assert_uint_eq(hand_stats().unwound, 1);
	hand_sample(TOP - 2);
	hand_all_complete();
	ck_assert_uint_eq(hand_stats().stale, 0);
	hand_close();
}
END_TEST

/* What is popped is captured, and nothing in it is patched again. */
START_TEST(nothing_is_planted_below_the_target)
{
	enum { TARGET = TOP / 2 };
	open_by(_i % RULES, (unsigned)(_i / RULES) + 1);
	hand_sample(TOP);
	ck_assert_uint_eq(hand_stats().planted, 1);
	unsigned first = TOP - (unsigned)(_i / RULES);
	ck_assert(hand_patched(first));
	ck_assert_int_eq(incstack_stack_unwinding_to(hand.s, hand_sp(TARGET)), 0);
	ck_assert_uint_eq(hand_stats().unwound, 1);
	ck_assert_uint_eq(hand_stats().planted, 2);
	for (unsigned n = TARGET + 1; n < first; n++)
		ck_assert(!hand_patched(n));
	hand_sample(TARGET);
	hand_all_complete();
	ck_assert_uint_eq(hand_stats().stale, 0);
	hand_close();
}
END_TEST

/* A handler may sample between the announcement and the jump, and then plant a barrier with the same
 * thunk. */
START_TEST(sampled_between_the_announcement_and_the_jump)
{
	enum { TARGET = TOP / 2 };
	open_by(_i % RULES, (unsigned)(_i / RULES) + 1);
	hand_sample(TOP - 1);
	ck_assert(hand_patched(TOP - 1 - (unsigned)(_i / RULES)));
	ck_assert_int_eq(incstack_stack_unwinding_to(hand.s, hand_sp(TARGET)), 0);
	for (unsigned n = TARGET + 1; n <= TOP; n++)
		ck_assert(!hand_patched(n));
	hand_sample(TOP);
	ck_assert(hand_patched(TOP - (unsigned)(_i / RULES)));
	hand_all_complete();
	hand_close();
}
END_TEST

/* ---- slots that show another stack's thunk ------------------------------------------------ */

/* Two states of one stack, for example of two embedders. Each leaves alone what the other has
 * patched, in whatever order they end, and shows the addresses behind the patches. */
START_TEST(slots_of_others_are_left_alone)
{
	open_by(_i % RULES, 1);
	struct incstack_stack *const mine = hand.s;
	hand_sample(TOP);
	const uintptr_t thunk = *hand_slot(TOP);
	hand.s = hand_stack();
	hand.samples = 0;
	for (int i = 0; i < 2; i++) {
		hand_sample(TOP);
		ck_assert_uint_eq(*hand_slot(TOP), thunk);
		ck_assert(hand_patched(TOP - 1));
	}
	hand_all_complete();
	if (_i / RULES) {
		hand_sample(TOP); /* the return of TOP - 1 is served, with all below known */
		ck_assert_uint_eq(hand_return(TOP - 1), hand_pc(TOP - 2));
		hand_all_complete();
	}
	incstack_stack_destroy(mine);
	ck_assert_uint_eq(*hand_slot(TOP), hand_pc(TOP - 1));
	hand_close();
	for (unsigned n = 1; n <= TOP - 2; n++)
		ck_assert(!hand_patched(n));
}
END_TEST

enum { OUTER = TOP / 2, BETWEEN = (TOP + OUTER) / 2 };

/* A return that finds all callers known goes past them, too. Where objects were decoded when they
 * were captured, only the slot can show this. */
START_TEST(returns_leave_slots_of_others_alone)
{
	open_by(_i % RULES, 1);
	for (unsigned n = 1; n < HAND_FRAMES && _i / RULES; n++)
		hand.rules[n].flags = INCSTACK_RULE_DECODE_NOW;
	struct incstack_stack *const mine = hand.s;
	hand_sample(OUTER);
	const uintptr_t thunk = *hand_slot(OUTER);
	hand.s = hand_stack();
	hand.samples = 0;
	hand_sample(TOP);
	hand_all_complete();
	for (unsigned n = TOP; n > OUTER; n--)
		ck_assert_uint_eq(hand_return(n), hand_pc(n - 1));
	ck_assert_uint_eq(*hand_slot(OUTER), thunk);
	ck_assert(hand_patched(OUTER - 1));
	incstack_stack_destroy(mine);
	hand_close();
}
END_TEST

/* ---- where a walk is cut ------------------------------------------------------------------ */

/* The code of the last captured frame has no rule: the return into it is left alone. */
START_TEST(no_barrier_where_a_walk_was_cut)
{
	open_by(_i, 1);
	hand.rules[OUTER].kind = INCSTACK_RULE_NONE;
	hand_sample(TOP);
	struct incstack_tree *tree = hand_retrieve();
	ck_assert_uint_eq(tree->truncated, 1);
	incstack_tree_release(tree);
	for (unsigned n = TOP; n > OUTER + 1; n--) {
		ck_assert(hand_patched(n));
		ck_assert_uint_eq(hand_return(n), hand_pc(n - 1));
	}
	ck_assert_uint_eq(*hand_slot(OUTER + 1), hand_pc(OUTER));
	hand_close();
}
END_TEST

/* Retrieve cuts the chain between two barriers, and no later walk would find the outer one. So it
 * is lifted, and its trace is complete. */
START_TEST(no_barrier_behind_a_cut)
{
	open_by(_i, 1);
	hand.rules[BETWEEN].kind = INCSTACK_RULE_NONE;
	hand_sample(OUTER);
	hand_sample(TOP);
	ck_assert(hand_patched(OUTER) && hand_patched(TOP));
	struct incstack_tree *tree = hand_retrieve();
	hand_shows_all(tree->traces->top, OUTER);
	ck_assert_uint_eq(tree->truncated, 1);
	incstack_tree_release(tree);
	ck_assert(hand_patched(TOP));
	ck_assert_uint_eq(*hand_slot(OUTER), hand_pc(OUTER - 1));
	hand_close();
}
END_TEST

/* The mode changes while a frame has a barrier: that frame is not missing in the trace. */
START_TEST(mode_changes_with_a_barrier)
{
	open_by(_i, 1);
	hand_sample(TOP);
	ck_assert(hand_patched(TOP));
	ck_assert_int_eq(incstack_stack_set_mode(hand.s, INCSTACK_MODE_VALIDATE), 0);
	ck_assert(!hand_patched(TOP));
	hand_all_complete();
	hand_close();
}
END_TEST

/* A sample on another stack, for example a signal stack, that ends there says nothing about this
 * stack. */
START_TEST(base_of_another_stack)
{
	static uintptr_t elsewhere[16];
	const struct incstack_top top = {.pc = hand_pc(0), .sp = (uintptr_t)elsewhere};
	open_by(_i, 1);
	hand_sample(TOP);
	ck_assert_int_eq(incstack_stack_sample(hand.s, 0, 1, &top), 0);
	ck_assert_uint_eq(hand_stats().stale, 0);
	ck_assert_uint_eq(hand_return(TOP), hand_pc(TOP - 1));
	hand.samples++;
	struct incstack_tree *tree = hand_retrieve();
	hand_shows_all(tree->traces->top, TOP);
	ck_assert_uint_eq(tree->truncated, 0);
	incstack_tree_release(tree);
	hand_close();
}
END_TEST

/* ---- code that goes ----------------------------------------------------------------------- */

static unsigned decodes;
static uintptr_t decoded_pc;

static int decode_and_count(void *context, const struct incstack_frame *frame,
			    struct incstack_virtual_frame *out, int max)
{
	decodes++;
	decoded_pc = frame->pc;
	return hand_decode(context, frame, out, max);
}

/* Code is identified by its calls, not by their return addresses, which may lie behind its end. */
START_TEST(unloading_is_about_calls)
{
	struct incstack_embedder embedder = hand_embedder();
	embedder.code.decode = decode_and_count;
	hand_open_with((struct incstack_options){.mode = INCSTACK_MODE_FULL}, &embedder);
	hand_sample(TOP);
	for (unsigned n = 1; n < TOP; n++) {
		const uintptr_t pc = hand_pc(n);
		decodes = 0;
		ck_assert_int_eq(incstack_runtime_code_unloading(hand.rt, hand.s, pc, pc + 1), 0);
		ck_assert_uint_eq(decodes, 0);
		ck_assert_int_eq(incstack_runtime_code_unloading(hand.rt, hand.s, pc - 1, pc), 0);
		ck_assert_uint_eq(decodes, 1);
		ck_assert_uint_eq(decoded_pc, pc);
	}
	hand_all_complete();
	hand_close();
}
END_TEST

extern const char __start_victim_code[], __stop_victim_code[];
static struct incstack_runtime *native_runtime;
static struct incstack_stack *native_stack;
static jmp_buf out;
static bool gone;
static unsigned in_time, too_late;

static int decode_while_it_is_there(void *context, const struct incstack_frame *frame,
				    struct incstack_virtual_frame *outcome, int max)
{
	const bool inside_it = frame->pc - 1 - (uintptr_t)__start_victim_code <
			       (uintptr_t)(__stop_victim_code - __start_victim_code);
	(void)context;
	ck_assert_int_ge(max, 1);
	in_time += inside_it && !gone;
	too_late += inside_it && gone;
	*outcome = (struct incstack_virtual_frame){.function = frame->pc, .position = 7};
	return 1;
}

__attribute__((noinline)) static void sample_and_leave(void)
{
	ck_assert_int_eq(sample_native(native_stack, 0, 1), 0);
	longjmp(out, 1);
}

__attribute__((noinline, section("victim_code"))) static void victim(void)
{
	sample_and_leave();
	__asm__ volatile("");
}

__attribute__((noinline)) static void leave_victim(void)
{
	if (!setjmp(out))
		victim();
	__asm__ volatile("");
}

/* The skeleton of the frame that was left is the last chance to decode its position. */
START_TEST(unloading_after_a_silent_exit)
{
	struct incstack_embedder embedder = *incstack_native_embedder();
	struct incstack_options options = {
		.size = sizeof(options), .embedder = &embedder, .distance = 1};
	struct incstack_tree *tree;
	embedder.code.decode = decode_while_it_is_there;
	ck_assert_int_eq(incstack_runtime_create(&options, &native_runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(native_runtime, &native_stack), 0);
	leave_victim();
	ck_assert_int_eq(incstack_runtime_code_unloading(native_runtime, native_stack,
							 (uintptr_t)__start_victim_code,
							 (uintptr_t)__stop_victim_code),
			 0);
	gone = true;
	ck_assert_uint_eq(in_time, 1);
	ck_assert_int_eq(incstack_stack_retrieve(native_stack, &tree), 0);
	const struct incstack_frame_object *o = tree->traces->top->parent;
	ck_assert(o->flags & INCSTACK_OBJECT_TRUNCATED);
	ck_assert_int_eq(o->position, 7);
	ck_assert_uint_eq(too_late, 0);
	incstack_tree_release(tree);
	incstack_stack_destroy(native_stack);
	incstack_runtime_destroy(native_runtime);
}
END_TEST

/* ---- who retrieves is nobody that is known ------------------------------------------------- */

extern const char __start_other_code[], __stop_other_code[];
static uint8_t other_kind;

static int rule_of_other_code(void *context, uintptr_t address, struct incstack_rule *rule)
{
	if (address - (uintptr_t)__start_other_code >=
	    (uintptr_t)(__stop_other_code - __start_other_code))
		return incstack_native_embedder()->code.find_rule(context, address, rule);
	*rule = (struct incstack_rule){.kind = other_kind};
	return 0;
}

__attribute__((noinline, section("other_code"))) static void
retrieve_from_other_code(struct incstack_tree **tree)
{
	ck_assert_int_eq(incstack_stack_retrieve(native_stack, tree), 0);
	__asm__ volatile("");
}

__attribute__((noinline)) static void sample_and_retrieve(struct incstack_tree **tree)
{
	ck_assert_int_eq(sample_native(native_stack, 0, 1), 0);
	retrieve_from_other_code(tree);
	__asm__ volatile("");
}

/* A walk from there reaches no known frame: it ends at code without a rule, which proves nothing,
 * or at an outermost frame, behind which no known frame is left. The open traces are truncated,
 * because their frames may be gone. */
START_TEST(retrieve_that_meets_no_known_frame)
{
	struct incstack_embedder embedder = *incstack_native_embedder();
	const struct incstack_options options = {
		.size = sizeof(options), .embedder = &embedder, .distance = 1};
	struct incstack_stats stats = {.size = sizeof(stats)};
	struct incstack_tree *tree;
	embedder.code.find_rule = rule_of_other_code;
	embedder.code.find_rule_quickly = NULL;
	other_kind = _i ? INCSTACK_RULE_END : INCSTACK_RULE_NONE;
	ck_assert_int_eq(incstack_runtime_create(&options, &native_runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(native_runtime, &native_stack), 0);
	sample_and_retrieve(&tree);
	ck_assert_uint_eq(tree->count, 1);
	ck_assert_uint_eq(tree->truncated, 1);
	ck_assert(tree->traces->top->parent->flags & INCSTACK_OBJECT_TRUNCATED);
	incstack_tree_release(tree);
	ck_assert_int_eq(incstack_stack_stats(native_stack, &stats), 0);
	ck_assert_uint_eq(stats.stale, (uint64_t)_i);
	ck_assert_uint_eq(stats.revived, (uint64_t)_i);
	incstack_stack_destroy(native_stack);
	incstack_runtime_destroy(native_runtime);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stack contract");
	TCase *tests = tcase_create("with barriers in the way");
	tcase_add_loop_test(tests, rewritten_slot_gets_no_barrier, 0, RULES);
	tcase_add_loop_test(tests, rewritten_behind_a_barrier, 0, RULES);
	tcase_add_loop_test(tests, moved_frame_with_its_own_barrier, 0, RULES);
	tcase_add_loop_test(tests, slot_at_the_target_is_not_popped, 0, RULES);
	tcase_add_loop_test(tests, nothing_is_planted_below_the_target, 0, 4 * RULES);
	tcase_add_loop_test(tests, sampled_between_the_announcement_and_the_jump, 0, 4 * RULES);
	tcase_add_loop_test(tests, slots_of_others_are_left_alone, 0, 2 * RULES);
	tcase_add_loop_test(tests, returns_leave_slots_of_others_alone, 0, 2 * RULES);
	tcase_add_loop_test(tests, no_barrier_where_a_walk_was_cut, 0, RULES);
	tcase_add_loop_test(tests, no_barrier_behind_a_cut, 0, RULES);
	tcase_add_loop_test(tests, mode_changes_with_a_barrier, 0, RULES);
	tcase_add_loop_test(tests, base_of_another_stack, 0, RULES);
	tcase_add_test(tests, unloading_is_about_calls);
	tcase_add_test(tests, unloading_after_a_silent_exit);
	tcase_add_loop_test(tests, retrieve_that_meets_no_known_frame, 0, 2);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
