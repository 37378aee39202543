/* SPDX-License-Identifier: MIT
 *
 * Tests the frame iterator over the stacks of a random program that samples, returns, unwinds and
 * deoptimizes. Whatever the return slots hold, it shows the program's own frames, with their
 * inlined frames.
 */
#include <incstack/frames.h>

#include "run_suite.h"
#include "simulated.h"

enum { STEPS = 4000, EVERY = 7 };

static struct incstack_frames frames;

static void shows(const struct sim_frame *f)
{
	struct incstack_virtual_frame out[2];
	const int count = sim_describe(f->pc, f->fp, out);
	for (int i = 0; i < count; i++) {
		ck_assert_int_eq(incstack_frames_next(&frames), 1);
		ck_assert_uint_eq(frames.frame.pc, f->pc);
		ck_assert_uint_eq(frames.frame.sp, f->sp);
		ck_assert_uint_eq(frames.frame.fp, f->fp);
		ck_assert_uint_eq(frames.function, out[i].function);
		ck_assert_int_eq(frames.position, out[i].position);
		ck_assert_uint_eq(frames.kind, i + 1 < count ? INCSTACK_KIND_INLINED : 0);
	}
}

static void shows_all(void)
{
	for (const struct sim_frame *f = sim_top(); f >= sim.frames; f--)
		shows(f);
	ck_assert_int_eq(incstack_frames_next(&frames), 0);
}

static void walk(void)
{
	const struct sim_frame *f = sim_top();
	const struct incstack_top top = {
		.pc = f->pc, .sp = f->sp, .fp = f->fp, .flags = INCSTACK_TOP_EXACT};
	const uintptr_t low = (uintptr_t)sim.words, high = (uintptr_t)(sim.words + SIM_WORDS);
	const struct incstack_frames_place with_state = {.stack = sim.s};
	const struct incstack_frames_place without = {.runtime = sim.rt, .low = low, .high = high};
	ck_assert_int_eq(incstack_frames_begin(&frames, &with_state, &top), 0);
	shows_all();
	ck_assert_int_eq(incstack_frames_begin(&frames, &without, &top), 0);
	shows_all();
}

START_TEST(machine_stacks)
{
	ck_assert_int_eq(sim_open(sim_variant(_i)), 0);
	ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 20), 0);
	for (int i = 0; i < STEPS; i++) {
		sim_step();
		if (i % EVERY == 0)
			walk();
		if (sim.pending == SIM_TRACES) {
			ck_assert_int_eq(sim_retrieve(), 0);
			ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 20), 0);
		}
	}
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_nothing_is_lost();
	ck_assert_uint_gt(sim.taken, STEPS / 20);
	sim_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frames, random");
	TCase *tc = tcase_create("machine stacks");
	tcase_add_loop_test(tc, machine_stacks, 0, SIM_VARIANTS);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
