/* SPDX-License-Identifier: MIT
 *
 * Tests thunks whose barriers vanished unannounced. If their slot comes back to life, the return
 * leads to the right place, whatever was planted since. Such a thunk is reused only if thunks
 * are short and no return can come, and never after such a return was seen.
 */
#include <setjmp.h>

#include "trace/reset.h"
#include "../unit/hand_made.h"
#include "../unit/run_suite.h"
#include "../unit/sample_native.h"
#include "traced.h"

#define NOINLINE __attribute__((noinline))

/* ---- dead slots that come alive --------------------------------------------------------- */

enum { TOP = 30, OTHERS = 8 };

/* The frames from TOP on were left; a sample further out notices. */
static void retire_at_top(void)
{
	hand_sample(TOP);
	ck_assert(hand_patched(TOP));
	hand_sample(TOP - 5);
	ck_assert_uint_eq(hand_stats().stale, 1);
	ck_assert(hand_patched(TOP));
}

/* Plants barriers elsewhere, with the thunks that are free. */
static void plant_elsewhere(void)
{
	for (unsigned n = 1; n <= OTHERS; n++) {
		hand_sample(n);
		ck_assert_uint_eq(hand_return(n), hand_pc(n - 1));
		hand_sample(TOP - 5);
	}
}

START_TEST(leads_to_the_right_place)
{
	hand_open((struct incstack_options){.distance = 1});
	ck_assert_int_eq(incstack_stack_reserve(hand.s, 1 << 20), 0);
	retire_at_top();
	const uintptr_t thunk = *hand_slot(TOP);
	if (_i == 1) {
		struct incstack_tree *tree = hand_retrieve();
		incstack_tree_release(tree);
	}
	if (_i == 2)
		ck_assert_int_eq(incstack_stack_reserve(hand.s, 0), 0);
	plant_elsewhere();
	ck_assert_uint_eq(*hand_slot(TOP), thunk);
	ck_assert_uint_eq(incstack_slot_read(hand_slot(TOP)), hand_pc(TOP - 1));
	ck_assert_uint_eq(hand_stats().revived, 0);
	ck_assert_uint_eq(hand_return(TOP), hand_pc(TOP - 1));
	ck_assert_uint_eq(hand_stats().revived, 1);
	hand_close();
	ck_assert_uint_eq(*hand_slot(TOP), hand_pc(TOP - 1)); /* given back by then */
}
END_TEST

/* A frame that was copied away lies where the stack was copied to: there the slot is restored when
 * the state of the stack ends, and the old place is left alone. */
START_TEST(moves_with_the_stack)
{
	static uintptr_t copy[HAND_WORDS];
	const uintptr_t low = (uintptr_t)copy, delta = low - (uintptr_t)hand.words;
	hand_open((struct incstack_options){.distance = 1});
	retire_at_top();
	const uintptr_t thunk = *hand_slot(TOP);
	uintptr_t *const moved = (uintptr_t *)((uintptr_t)hand_slot(TOP) + delta);
	memcpy(copy, hand.words, sizeof(copy));
	ck_assert_int_eq(incstack_stack_moved(hand.s, low, low + sizeof(copy)), 0);
	incstack_stack_destroy(hand.s);
	ck_assert_uint_eq(*moved, hand_pc(TOP - 1));
	ck_assert_uint_eq(*hand_slot(TOP), thunk);
	incstack_runtime_destroy(hand.rt);
}
END_TEST

/* A return is being served, so its thunk may still be read. A reset does not forget why the thunk is
 * kept: a second return through it does not show that the stack was copied. */
START_TEST(kept_by_a_reset_for_the_same_reason)
{
	hand_open((struct incstack_options){.distance = 1});
	hand_sample(TOP);
	struct incstack__cell *cell = thunk_cell(*hand_slot(TOP));
	const uint32_t number = thunk_number(*hand_slot(TOP));
	ck_assert_uint_eq(incstack__returned(cell, hand_fp(TOP - 1), 0), hand_pc(TOP - 1));
	incstack__limbo_empty(hand.s);
	ck_assert_uint_eq(barrier_of(number)->retired, RETIRED_IN_USE);
	incstack__reset_stack(hand.s, true);
	ck_assert_uint_eq(barrier_of(number)->retired, RETIRED_IN_USE);
	ck_assert_uint_eq(hand_return(TOP), hand_pc(TOP - 1));
	ck_assert_uint_eq(hand_stats().revived, 0);
	hand_close();
}
END_TEST

/* ---- used again, on the machine stack ---------------------------------------------------- */

enum shortage { PLENTY, SHORT };

static void open_short(enum shortage shortage)
{
	const struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .thunk_limit = shortage == SHORT ? 2 : 0};
	ck_assert_int_eq(incstack_runtime_create_native(&options, &traced_runtime), 0);
	ck_assert_int_eq(incstack_stack_create_native(traced_runtime, &traced_stack), 0);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 19), 0);
	traced_samples = 0;
}

static NOINLINE int descend(int depth)
{
	traced_sample();
	int result = depth ? descend(depth - 1) : 0;
	__asm__ volatile("" : "+r"(result));
	return result + 1;
}

static void reserve(void)
{
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 16), 0);
}

/* The barrier of the caller's own return vanishes, and its thunk is retired. */
__attribute__((always_inline)) static inline uintptr_t vanish(volatile uintptr_t *slot)
{
	traced_sample();
	const uintptr_t thunk = *slot;
	const uintptr_t resume = incstack_slot_read((const uintptr_t *)slot);
	ck_assert_uint_ne(thunk, resume);
	const uint64_t stale = traced_stats().stale;
	*slot = resume;
	ck_assert_int_eq(descend(1), 2);
	ck_assert_uint_eq(traced_stats().stale, stale + 1);
	return thunk;
}

/* `comes_back` is what the slot holds when thunks are looked for. */
static NOINLINE void through_own_slot(enum shortage shortage, bool comes_back)
{
	volatile uintptr_t *slot = (uintptr_t *)__builtin_frame_address(0) + 1;
	const uintptr_t other = 0x1238;
	const uintptr_t resume = incstack_slot_read((const uintptr_t *)slot);
	const uintptr_t thunk = vanish(slot);
	*slot = comes_back ? thunk : other;
	reserve();
	if (!comes_back)
		ck_assert_uint_eq(*slot, other);
	else if (shortage == SHORT)
		ck_assert_uint_eq(*slot, resume);
	else
		ck_assert_uint_eq(*slot, thunk);
	if (!comes_back)
		*slot = resume;
}

/* If thunks are short, the slot is restored before the thunk is used again. A slot that holds
 * something else is left alone. Otherwise nothing is touched, and the return comes. */
START_TEST(given_back_where_thunks_are_short)
{
	const enum shortage shortage = _i % 2 ? SHORT : PLENTY;
	const bool comes_back = _i / 2;
	open_short(shortage);
	for (int i = 0; i < 4; i++) {
		through_own_slot(shortage, comes_back);
		ck_assert_int_eq(descend(3), 4);
	}
	ck_assert_uint_eq(traced_stats().revived, shortage == PLENTY && comes_back ? 4 : 0);
	traced_check();
	traced_close();
}
END_TEST

static NOINLINE void retrieve_with_own_slot(void)
{
	volatile uintptr_t *slot = (uintptr_t *)__builtin_frame_address(0) + 1;
	const uintptr_t resume = incstack_slot_read((const uintptr_t *)slot);
	*slot = vanish(slot);
	traced_check();
	ck_assert_uint_eq(*slot, resume);
}

/* By a retrieve as well. */
START_TEST(given_back_by_a_retrieve)
{
	open_short(SHORT);
	retrieve_with_own_slot();
	ck_assert_uint_eq(traced_stats().revived, 0);
	traced_check();
	traced_close();
}
END_TEST

static NOINLINE void revive(void)
{
	volatile uintptr_t *slot = (uintptr_t *)__builtin_frame_address(0) + 1;
	*slot = vanish(slot);
}

static NOINLINE void keeps_its_thunk(void)
{
	volatile uintptr_t *slot = (uintptr_t *)__builtin_frame_address(0) + 1;
	const uintptr_t thunk = vanish(slot);
	*slot = thunk;
	reserve();
	ck_assert_uint_eq(*slot, thunk);
}

/* After a return through a retired thunk, no retired thunk is used again, not even if thunks are
 * short. */
START_TEST(kept_where_stacks_are_copied)
{
	open_short(SHORT);
	revive();
	ck_assert_uint_eq(traced_stats().revived, 1);
	keeps_its_thunk();
	ck_assert_uint_eq(traced_stats().revived, 2);
	traced_check();
	traced_close();
}
END_TEST

/* After enough such returns, nothing is patched from the next reserve, retrieve or new stack on,
 * and the open traces are complete. */
START_TEST(copied_stacks_are_not_patched)
{
	enum { ENOUGH = 8 };
	hand_open((struct incstack_options){.distance = 1});
	hand_sample(TOP);
	atomic_store(&hand.rt->revived, ENOUGH - 1);
	ck_assert_int_eq(incstack_stack_reserve(hand.s, 0), 0);
	hand_all_complete();
	ck_assert_uint_eq(hand_stats().mode, INCSTACK_MODE_PATCH);
	ck_assert(hand_patched(TOP));
	hand_sample(TOP);
	atomic_store(&hand.rt->revived, ENOUGH);
	if (_i) {
		ck_assert_int_eq(incstack_stack_reserve(hand.s, 0), 0);
		ck_assert_uint_eq(hand_stats().mode, INCSTACK_MODE_VALIDATE);
	}
	hand_all_complete();
	ck_assert_uint_eq(hand_stats().mode, INCSTACK_MODE_VALIDATE);
	ck_assert(!hand_patched(TOP));
	struct incstack_stack *const first = hand.s;
	ck_assert_int_eq(incstack_stack_set_mode(first, INCSTACK_MODE_PATCH), 0);
	ck_assert_uint_eq(hand_stats().mode, INCSTACK_MODE_VALIDATE);
	hand.s = hand_stack();
	ck_assert_uint_eq(hand_stats().mode, INCSTACK_MODE_VALIDATE);
	incstack_stack_destroy(first);
	hand_close();
}
END_TEST

/* The thunk of a return that is being handled stays as it is until the frame that it comes from is
 * gone, however short thunks are. */
static NOINLINE void serve_own_return(void)
{
	volatile uintptr_t *slot = (uintptr_t *)__builtin_frame_address(0) + 1;
	traced_sample();
	traced_check(); /* all callers are known: the next barrier gets another thunk */
	const uintptr_t thunk = *slot;
	const uint32_t number = thunk_number(thunk);
	ck_assert_uint_ne(thunk, incstack_slot_read((const uintptr_t *)slot));
	ck_assert_uint_eq(incstack__returned(thunk_cell(thunk), slot[-1], 0),
			  incstack_slot_read((const uintptr_t *)slot));
	incstack__limbo_empty(traced_stack);
	ck_assert_uint_eq(barrier_of(number)->retired, RETIRED_IN_USE);
	for (int i = 0; i < 3; i++) {
		reserve();
		ck_assert_uint_eq(*slot, thunk);
		ck_assert_uint_eq(barrier_of(number)->retired, RETIRED_IN_USE);
	}
}

START_TEST(kept_while_a_return_is_served)
{
	open_short(SHORT);
	for (int i = 0; i < 4; i++) {
		serve_own_return();
		ck_assert_int_eq(descend(3), 4);
		reserve();
		ck_assert_uint_eq(traced_stack->thunks.retired, 0); /* its slot is dead by now */
	}
	ck_assert_uint_eq(traced_stats().revived, 0);
	traced_check();
	traced_close();
}
END_TEST

/* ---- dead memory -------------------------------------------------------------------------- */

enum { FAR = 1 << 16 };
static jmp_buf out;
static volatile uintptr_t *dead;

static NOINLINE void sample_and_leave(void)
{
	dead = (uintptr_t *)__builtin_frame_address(0) + 1;
	traced_sample();
	longjmp(out, 1);
}

static NOINLINE void far_below(void)
{
	char memory[FAR];
	__asm__ volatile("" : : "r"(memory) : "memory");
	sample_and_leave();
	__asm__ volatile("" : : "r"(memory) : "memory");
}

__attribute__((no_sanitize("address", "thread"))) static NOINLINE uintptr_t word_at_dead(void)
{
	return *dead;
}

/* Memory below the running frame is not written. */
START_TEST(dead_memory_is_not_written)
{
	open_short(SHORT);
	if (!setjmp(out))
		far_below();
	const uintptr_t thunk = word_at_dead();
	ck_assert_int_eq(sample_native(traced_stack, 1, 1), 0);
	ck_assert_uint_eq(traced_stats().stale, 1);
	reserve();
	ck_assert_uint_eq(word_at_dead(), thunk);
	ck_assert_int_eq(sample_native(traced_stack, 2, 1), 0);
	ck_assert_uint_eq(traced_stats().no_thunk, 0);
	traced_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("retired thunks");
	TCase *tests = tcase_create("vanished barriers");
	tcase_add_loop_test(tests, leads_to_the_right_place, 0, 3);
	tcase_add_test(tests, moves_with_the_stack);
	tcase_add_test(tests, kept_by_a_reset_for_the_same_reason);
	tcase_add_loop_test(tests, given_back_where_thunks_are_short, 0, 4);
	tcase_add_test(tests, given_back_by_a_retrieve);
	tcase_add_test(tests, kept_where_stacks_are_copied);
	tcase_add_test(tests, kept_while_a_return_is_served);
	tcase_add_loop_test(tests, copied_stacks_are_not_patched, 0, 2);
	tcase_add_test(tests, dead_memory_is_not_written);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
