/* SPDX-License-Identifier: MIT
 *
 * Tests a scenario that uses everything while the Nth allocation fails, for every N. Each
 * operation returns a clear error or a right result, nothing leaks, and what is missing is
 * counted.
 */
#include "run_suite.h"
#include "simulated.h"

enum { STEPS = 900, MOST = 4000 };

static unsigned failed_operations;

static void expect_success_or_no_memory(int error)
{
	ck_assert(error == 0 || error == INCSTACK_ENOMEM);
	failed_operations += error != 0;
	ck_assert_int_eq(incstack__stack_verify(sim.s), 0);
}

/* Nothing is lost by a retrieve that fails: the next one has it all. */
static void retrieve(void)
{
	for (int attempt = 0; sim_retrieve(); attempt++) {
		failed_operations++;
		ck_assert_int_lt(attempt, 20);
	}
}

static void steps(void)
{
	for (int i = 0; i < STEPS; i++) {
		sim_step();
		if (i % 16 == 0)
			ck_assert_int_eq(incstack__stack_verify(sim.s), 0);
		if (sim.pending >= SIM_TRACES)
			retrieve();
		if (i % 100 == 0)
			expect_success_or_no_memory(incstack_stack_reserve(sim.s, 4096));
	}
}

/* Returns false if the stack could not be created. */
static bool scenario(struct incstack_options options)
{
	int error = sim_open(options);
	if (error) {
		ck_assert_int_eq(error, INCSTACK_ENOMEM);
		ck_assert_uint_eq(sim.live, 0);
		return false;
	}
	steps();
	ck_assert_int_eq(incstack_stack_set_mode(sim.s, INCSTACK_MODE_VALIDATE), 0);
	steps();
	ck_assert_int_eq(incstack_stack_set_mode(sim.s, INCSTACK_MODE_PATCH), 0);
	steps();
	expect_success_or_no_memory(incstack_runtime_code_unloading(sim.rt, sim.s, SIM_CODE,
								    SIM_CODE + 10 * SIM_CALLS));
	steps();
	retrieve();
	struct incstack_stats stats = sim_stats();
	ck_assert_uint_eq(stats.samples, sim.taken);
	ck_assert_uint_eq(stats.lost_limit, sim.refused);
	ck_assert_int_eq(sim.missing > 0, stats.truncated > 0);
	sim_close();
	return true;
}

static void fail_every(struct incstack_options options, unsigned burst)
{
	failed_operations = 0;
	unsigned n = 1, created = 0;
	for (;; n++) {
		sim.fail_at = n;
		sim.fail_until = n + burst;
		sim.allocations = 0;
		created += scenario(options);
		if (sim.allocations < n)
			break; /* nothing was left to fail */
		ck_assert_uint_lt(n, MOST);
	}
	ck_assert_uint_gt(n, 20);
	ck_assert_uint_gt(created, 0);
	ck_assert_uint_lt(created, n);
	ck_assert_uint_gt(failed_operations, 0);
	sim.fail_at = 0;
}

static const uint32_t distances[] = {1, 3, 0};

START_TEST(one_fails)
{
	fail_every((struct incstack_options){.distance = distances[_i], .chunk_bytes = 512}, 1);
}
END_TEST

START_TEST(several_fail)
{
	fail_every((struct incstack_options){.distance = distances[_i], .chunk_bytes = 512}, 4);
}
END_TEST

/* Then the rules are looked up again and again, and the traces are still right. */
START_TEST(no_memory_for_rules)
{
	sim.fail_at = 0;
	sim.fail_above = 32 << 10;
	ck_assert_int_eq(sim_open((struct incstack_options){.distance = 1, .chunk_bytes = 512}), 0);
	for (int i = 0; i < 4; i++)
		steps();
	ck_assert_uint_eq(sim_stats().truncated, 0);
	ck_assert_uint_gt(sim_stats().returns, 0);
	sim_close();
	sim.fail_above = 0;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("allocation failure");
	TCase *tc = tcase_create("core");
	tcase_add_loop_test(tc, one_fails, 0, 3);
	tcase_add_loop_test(tc, several_fail, 0, 3);
	tcase_add_test(tc, no_memory_for_rules);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
