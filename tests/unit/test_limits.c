/* SPDX-License-Identifier: MIT
 *
 * The smallest of everything: one thunk, chunks of a few objects, a byte limit that
 * is met in the middle of a trace. Traces are right or marked, what is refused is
 * counted, and after a retrieve it goes on.
 */
#include "run_suite.h"
#include "simulated.h"

enum { STEPS = 12000, CHUNK = 512 };

static const int distances[] = {0, 1, 3, 30, INCSTACK_DISTANCE_ADAPTIVE};
static const uint32_t modes[] = {INCSTACK_MODE_PATCH, INCSTACK_MODE_VALIDATE, INCSTACK_MODE_FULL};
enum { VARIANTS = 15 };

static struct incstack_options variant(int i)
{
	return (struct incstack_options){.distance = distances[i % 5], .mode = modes[i / 5]};
}

static void run(size_t reserve)
{
	for (int i = 0; i < STEPS; i++) {
		if (sim.pending == 0)
			ck_assert_int_eq(incstack_stack_reserve(sim.s, reserve), 0);
		sim_step();
		if (!sim.careless && i % 8 == 0)
			ck_assert_int_eq(incstack_stack_verify(sim.s), 0);
		if (sim.pending >= SIM_TRACES)
			ck_assert_int_eq(sim_retrieve(), 0);
	}
	ck_assert_int_eq(sim_retrieve(), 0);
}

static void nothing_is_lost(void)
{
	struct incstack_stats stats = sim_stats();
	ck_assert_uint_eq(stats.truncated, 0);
	ck_assert_uint_eq(stats.stale, 0);
	ck_assert_uint_eq(stats.samples, sim.taken);
	ck_assert_uint_eq(sim.refused, 0);
	ck_assert_uint_eq(sim.missing, 0);
}

START_TEST(no_limits)
{
	ck_assert_int_eq(sim_open(variant(_i)), 0);
	run(1 << 20);
	nothing_is_lost();
	if (_i < 3)
		ck_assert_uint_gt(sim_stats().returns, 0);
	sim_close();
}
END_TEST

START_TEST(smallest_chunks)
{
	struct incstack_options options = variant(_i);
	options.chunk_bytes = 1; /* the library takes the least that works */
	ck_assert_int_eq(sim_open(options), 0);
	run(1 << 20);
	nothing_is_lost();
	sim_close();
}
END_TEST

START_TEST(one_thunk)
{
	struct incstack_options options = variant(_i);
	options.thunk_limit = 1;
	ck_assert_int_eq(sim_open(options), 0);
	run(4 << 20);
	nothing_is_lost();
	if (_i < 3) {
		ck_assert_uint_gt(sim_stats().no_thunk, 0);
		ck_assert_uint_gt(sim_stats().returns, 0);
	}
	sim_close();
}
END_TEST

/* Nothing is reserved: samples find no room, or run out of it half way. */
START_TEST(byte_limit)
{
	struct incstack_options options = variant(_i);
	options.chunk_bytes = CHUNK;
	options.stack_bytes = 16 * CHUNK;
	ck_assert_int_eq(sim_open(options), 0);
	for (int round = 0; round < 50; round++) {
		while (sim.refused == 0 && sim.pending < SIM_TRACES)
			sim_step();
		ck_assert_int_eq(sim_retrieve(), 0);
		ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 20), INCSTACK_ELIMIT);
		ck_assert_int_eq(incstack_stack_reserve(sim.s, 8 * CHUNK), 0);
		sim.refused = 0;
		uint64_t taken = sim.taken;
		while (sim.taken == taken)
			sim_step();
		ck_assert_uint_eq(sim.refused, 0);
	}
	struct incstack_stats stats = sim_stats();
	ck_assert_uint_eq(stats.samples, sim.taken);
	ck_assert_int_eq(sim.missing > 0, stats.truncated > 0);
	sim_close();
}
END_TEST

/* The limit again, with the counters of what was refused. */
START_TEST(refusals_are_counted)
{
	struct incstack_options options = variant(_i);
	options.chunk_bytes = CHUNK;
	options.stack_bytes = 4 * CHUNK;
	ck_assert_int_eq(sim_open(options), 0);
	for (int i = 0; i < 2000; i++)
		sim_step();
	struct incstack_stats stats = sim_stats();
	ck_assert_uint_gt(sim.refused, 0);
	ck_assert_uint_eq(stats.lost_limit, sim.refused);
	ck_assert_uint_eq(stats.samples, sim.taken);
	ck_assert_int_eq(sim_retrieve(), 0);
	ck_assert_int_eq(sim_sample(), 0);
	sim_close();
}
END_TEST

/* Exits that nobody announced, and a retrieve before any sample could notice. */
START_TEST(unannounced_exits)
{
	ck_assert_int_eq(sim_open(variant(_i)), 0);
	sim.careless = true;
	run(1 << 20);
	struct incstack_stats stats = sim_stats();
	ck_assert_int_eq(sim.missing > 0, stats.truncated > 0);
	if (_i < 3)
		ck_assert_uint_gt(stats.stale, 0);
	sim_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits");
	TCase *tc = tcase_create("random programs");
	tcase_add_loop_test(tc, no_limits, 0, VARIANTS);
	tcase_add_loop_test(tc, smallest_chunks, 0, VARIANTS);
	tcase_add_loop_test(tc, one_thunk, 0, VARIANTS);
	tcase_add_loop_test(tc, byte_limit, 0, VARIANTS);
	tcase_add_loop_test(tc, refusals_are_counted, 0, VARIANTS);
	tcase_add_loop_test(tc, unannounced_exits, 0, VARIANTS);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
