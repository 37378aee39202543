/* SPDX-License-Identifier: MIT
 *
 * Tests the fast paths of samples and returns, which handle only ordinary frames: random
 * programs, with every frame compared; when a walk passes an old barrier and when a new one is
 * planted; and code that replaces other code at the same addresses.
 */
#include "run_suite.h"
#include "simulated.h"

enum { STEPS = 40000, ROUNDS = 30, SHALLOW = 9 };

static void open_usual(struct incstack_options options)
{
	sim.usual = true;
	ck_assert_int_eq(sim_open(options), 0);
}

static void run(int steps)
{
	for (int i = 0; i < steps; i++) {
		if (sim.pending == 0)
			ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 20), 0);
		sim_step();
		if (sim.pending >= SIM_TRACES)
			ck_assert_int_eq(sim_retrieve(), 0);
	}
	ck_assert_int_eq(sim_retrieve(), 0);
}

/* Calls a function whose position lies in its frame, or an ordinary one. */
static void call_one(bool position_inside)
{
	sim_call();
	while (sim_position_inside(sim_top()->function) != position_inside) {
		sim.depth--;
		sim_call();
	}
}

static void call_to(unsigned depth)
{
	while (sim.depth < depth)
		call_one(false);
}

START_TEST(at_random)
{
	open_usual(sim_variant(_i));
	run(STEPS);
	sim_nothing_is_lost();
	if (_i < SIM_PATCHED) {
		ck_assert_uint_gt(sim_stats().returns, 0);
		ck_assert_uint_gt(sim_stats().shared, 0);
	}
	sim_close();
}
END_TEST

/* The function that samples was reached by a tail call of the youngest function. So its frame
 * replaces that one's, and the word in its return slot, perhaps a barrier's thunk, is the position
 * of its caller. */
START_TEST(tail_calls)
{
	open_usual(sim_variant(_i));
	unsigned barriers = 0;
	for (int i = 0; i < STEPS / 4; i++) {
		run(1 + (int)sim_below(6));
		if (sim.depth < 2)
			continue;
		uintptr_t word = *(const uintptr_t *)sim_top()->slot;
		barriers += is_thunk(word);
		ck_assert_int_eq(sim_sample_of(sim_top() - 1, word), 0);
		ck_assert_int_eq(sim_sample(), 0);
	}
	ck_assert_int_eq(sim_retrieve(), 0);
	ck_assert_int_eq(barriers > 0, _i < SIM_PATCHED);
	sim_nothing_is_lost();
	sim_close();
}
END_TEST

/* The position of a frame is that of an earlier call, but the callee was left unannounced. Its
 * slot, which still shows the thunk, is dead, and what was captured of the frame is no longer true.
 * */
START_TEST(dead_slot)
{
	open_usual(sim_variant(0));
	ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 16), 0);
	call_one(true);
	call_one(false);
	sim_sample();
	const uintptr_t *slot = (const uintptr_t *)sim_top()->slot, resume = sim_top()->resume;
	sim.careless = true;
	sim_unwind(1);
	sim_top()->pc = resume;
	ck_assert(is_thunk(*slot));
	sim_sample();
	ck_assert_int_eq(sim_retrieve(), 0);
	ck_assert_uint_eq(sim_stats().stale, 1);
	sim_close();
}
END_TEST

/* Other code at the same addresses: each frame has another size at its place. */
START_TEST(other_code)
{
	open_usual(sim_variant(4 + 5 * _i)); /* adaptive */
	for (int round = 0; round < ROUNDS; round++) {
		unsigned asked = sim.asked;
		run(400);
		ck_assert_uint_gt(sim.asked, asked);
		uintptr_t high = (uintptr_t)(sim.words + SIM_WORDS);
		ck_assert_int_eq(incstack_stack_unwinding_to(sim.s, high), 0);
		ck_assert_int_eq(incstack_runtime_code_unloading(sim.rt, sim.s, 0, UINTPTR_MAX), 0);
		sim.layout++;
		sim.depth = 0;
		sim_call();
	}
	sim_nothing_is_lost();
	sim_close();
}
END_TEST

/* What is unloaded, up to the last byte, is looked up again, and nothing else. */
START_TEST(unloading_is_exact)
{
	open_usual((struct incstack_options){.mode = INCSTACK_MODE_FULL});
	struct sim_frame *top = sim_top();
	top->function = 1; /* with a plain rule, and the base */
	top->pc = SIM_CODE + SIM_CALLS + 8;
	const uintptr_t at = top->pc - 1; /* where its call is */
	const struct {
		uintptr_t low, high;
		bool forgotten;
	} cases[] = {{at, at + 1, true}, {at + 1, UINTPTR_MAX, false}, {0, at, false},
		     {0, at + 1, true},  {at, UINTPTR_MAX, true},      {0, UINTPTR_MAX, true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ck_assert_int_eq(sim_sample(), 0);
		unsigned asked = sim.asked;
		ck_assert_int_eq(
			incstack_runtime_code_unloading(sim.rt, NULL, cases[i].low, cases[i].high),
			0);
		ck_assert_int_eq(sim_sample(), 0);
		ck_assert_int_eq(sim.asked > asked, cases[i].forgotten);
	}
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_close();
}
END_TEST

static void return_to(unsigned depth)
{
	while (sim.depth > depth)
		sim_return();
}

/* Samples alternate between here and SHALLOW frames further up. From there each walk is longer than
 * the distance, but a barrier would save less than it costs before those frames are left again. */
START_TEST(rent_before_buying)
{
	open_usual(sim_variant(4));
	ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 22), 0);
	call_to(40);
	sim_sample();
	uint64_t returns = sim_stats().returns;
	const unsigned pairs = 20;
	for (unsigned i = 0; i < pairs; i++) {
		call_to(40 + SHALLOW);
		sim_sample();
		return_to(40);
		sim_sample();
	}
	/* a barrier at each would be passed three times by each */
	ck_assert_uint_lt(sim_stats().returns - returns, 2 * pairs);
	ck_assert_int_eq(sim_retrieve(), 0);

	/* If the samples stay at one depth, the next ones are cheap: a barrier was bought. */
	call_to(40 + SHALLOW);
	for (int i = 0; i < SHALLOW; i++)
		sim_sample();
	uint64_t walked = sim_stats().walked;
	sim_sample();
	ck_assert_uint_le(sim_stats().walked - walked, sim_stats().distance);
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_nothing_is_lost();
	sim_close();
}
END_TEST

/* A fixed distance is kept: there is no ski rental. */
START_TEST(fixed_distance)
{
	open_usual(sim_variant(2));
	ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 22), 0);
	call_to(60);
	for (int i = 0; i < 20; i++) {
		uint64_t walked = sim_stats().walked;
		sim_sample();
		ck_assert_uint_le(sim_stats().walked - walked, 3 + 2);
		return_to(sim.depth - 2);
		call_to(sim.depth + 1);
	}
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_nothing_is_lost();
	sim_close();
}
END_TEST

/* Room is reserved for the existing frames, too: they are captured when they return, and nothing
 * may be allocated then. */
START_TEST(room_for_what_is_open)
{
	struct incstack_options options = sim_variant(_i);
	options.chunk_bytes = 512;
	open_usual(options);
	for (int round = 0; round < ROUNDS; round++) {
		call_to(SIM_DEPTH - 10);
		ck_assert_int_eq(incstack_stack_reserve(sim.s, 1500), 0);
		sim_sample();
		ck_assert_int_eq(incstack_stack_reserve(sim.s, 64), 0);
		ck_assert_uint_ge(incstack_stack_room(sim.s), 64);
		return_to(1);
		ck_assert_int_eq(sim_retrieve(), 0);
	}
	sim_nothing_is_lost();
	sim_close();
}
END_TEST

/* The same programs, with the frame of each sample in registers. */
START_TEST(caller_in_registers)
{
	open_usual(sim_variant(_i));
	sim.by_registers = true;
	run(STEPS / 4);
	sim_nothing_is_lost();
	ck_assert_uint_eq(sim.refused, 0);
	sim_close();
}
END_TEST

/* It is refused before it begins if the room is less than is asked for beside the open frames. */
START_TEST(caller_with_little_room)
{
	open_usual(sim_variant(_i));
	call_to(SIM_DEPTH / 2);
	ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 16), 0);
	const struct sim_frame *top = sim_top();
	const size_t open = 2 * (sim.s->high - top->sp);
	for (size_t more = 0; more < 2; more++) {
		const size_t least = incstack__stack_sample_room(sim.s) - open + more;
		ck_assert_int_eq(
			incstack__sample_caller(sim.s, 0, top->pc, top->sp, top->fp, least),
			more ? INCSTACK_EROOM : 0);
		ck_assert_uint_eq(sim_stats().samples, 1);
		ck_assert_uint_eq(sim.s->busy, 0);
	}
	sim_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fast paths");
	TCase *tests = tcase_create("fast paths");
	tcase_add_loop_test(tests, at_random, 0, SIM_VARIANTS);
	tcase_add_loop_test(tests, tail_calls, 0, SIM_VARIANTS);
	tcase_add_test(tests, dead_slot);
	tcase_add_loop_test(tests, other_code, 0, 3);
	tcase_add_test(tests, unloading_is_exact);
#ifdef INCSTACK_HOSTILE
	(void)rent_before_buying; /* no walk beyond the distance */
#else
	tcase_add_test(tests, rent_before_buying);
#endif
	tcase_add_test(tests, fixed_distance);
	tcase_add_loop_test(tests, room_for_what_is_open, 0, SIM_PATCHED);
	tcase_add_loop_test(tests, caller_in_registers, 0, SIM_VARIANTS);
	tcase_add_loop_test(tests, caller_with_little_room, 0, SIM_PATCHED);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
