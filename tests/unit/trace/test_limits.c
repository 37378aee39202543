/* SPDX-License-Identifier: MIT
 *
 * Tests the smallest limits: one thunk, chunks of a few objects, and a byte limit that is met in
 * the middle of a trace. Traces are right or marked, what is refused is counted, and after a
 * retrieve everything works again.
 */
#include <signal.h>

#include "run_suite.h"
#include "simulated.h"

enum { STEPS = 12000, CHUNK = 512 };

static void run(size_t reserve)
{
	for (int i = 0; i < STEPS; i++) {
		if (sim.pending == 0)
			ck_assert_int_eq(incstack_stack_reserve(sim.s, reserve), 0);
		sim_step();
		if (!sim.careless && i % 8 == 0)
			ck_assert_int_eq(incstack__stack_verify(sim.s), 0);
		if (sim.pending >= SIM_TRACES)
			ck_assert_int_eq(sim_retrieve(), 0);
	}
	ck_assert_int_eq(sim_retrieve(), 0);
}

START_TEST(no_limits)
{
	ck_assert_int_eq(sim_open(sim_variant(_i)), 0);
	run(1 << 20);
	sim_nothing_is_lost();
	if (_i < 3)
		ck_assert_uint_gt(sim_stats().returns, 0);
	sim_close();
}
END_TEST

START_TEST(smallest_chunks)
{
	struct incstack_options options = sim_variant(_i);
	options.chunk_bytes = 1; /* the library uses the smallest size that works */
	ck_assert_int_eq(sim_open(options), 0);
	run(1 << 20);
	sim_nothing_is_lost();
	sim_close();
}
END_TEST

START_TEST(one_thunk)
{
	struct incstack_options options = sim_variant(_i);
	options.thunk_limit = 1;
	ck_assert_int_eq(sim_open(options), 0);
	run(4 << 20);
	sim_nothing_is_lost();
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
	struct incstack_options options = sim_variant(_i);
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

/* Samples at polls make room by themselves, until the limit is reached. */
START_TEST(polls_need_no_reserve)
{
	struct incstack_options options = sim_variant(_i);
	options.chunk_bytes = 16 * CHUNK;
	options.stack_bytes = 256 * CHUNK;
	ck_assert_int_eq(sim_open(options), 0);
	sim.at_polls = true;
	for (int i = 0; i < STEPS; i++) {
		sim_step();
		if (sim.pending >= SIM_TRACES)
			ck_assert_int_eq(sim_retrieve(), 0);
	}
	ck_assert_int_eq(sim_retrieve(), 0);
	ck_assert_uint_gt(sim.taken, 1000);
	sim_nothing_is_lost();
	options.chunk_bytes = CHUNK;
	options.stack_bytes = CHUNK;
	sim_close();
	ck_assert_int_eq(sim_open(options), 0);
	sim.at_polls = true;
	while (sim.refused == 0 && sim.pending < SIM_TRACES)
		sim_step();
	ck_assert_int_eq(sim_sample(), INCSTACK_ELIMIT);
	sim.at_polls = false;
	ck_assert_int_eq(sim_sample(), INCSTACK_EROOM);
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_close();
}
END_TEST

START_TEST(a_tree_is_released_once)
{
	struct incstack_tree *tree;
	ck_assert_int_eq(sim_open(sim_variant(_i)), 0);
	ck_assert_int_eq(incstack_stack_retrieve(sim.s, &tree), 0);
	incstack_tree_release(tree);
	incstack_tree_release(tree); /* does nothing */
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_int_eq(sim_retrieve(), 0);
	/* Its traces are still being taken. */
	incstack_tree_release((struct incstack_tree *)(uintptr_t)incstack_stack_tree(sim.s));
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_close();
}
END_TEST

/* The limit again, with the counters of what was refused. */
START_TEST(refusals_are_counted)
{
	struct incstack_options options = sim_variant(_i);
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

/* As long as the library says that there is room for the deepest trace, there is. */
START_TEST(room_is_there)
{
	enum { DEEPEST = (SIM_DEPTH + 3) * 32 };
	struct incstack_options options = sim_variant(_i);
	options.chunk_bytes = 2 * DEEPEST;
	ck_assert_int_eq(sim_open(options), 0);
	for (int round = 0; round < 20; round++) {
		ck_assert_int_eq(incstack_stack_reserve(sim.s, 2 * DEEPEST), 0);
		ck_assert_uint_ge(incstack_stack_room(sim.s), 2 * DEEPEST);
		while (incstack_stack_room(sim.s) >= DEEPEST && sim.pending < SIM_TRACES)
			sim_step();
		ck_assert_uint_gt(sim.pending, 0);
		ck_assert_int_eq(sim_retrieve(), 0);
	}
	sim_nothing_is_lost();
	sim_close();
}
END_TEST

/* Unannounced exits, and a retrieve before any sample could notice them. */
START_TEST(unannounced_exits)
{
	ck_assert_int_eq(sim_open(sim_variant(_i)), 0);
	sim.careless = true;
	run(1 << 20);
	struct incstack_stats stats = sim_stats();
	ck_assert_int_eq(sim.missing > 0, stats.truncated > 0);
	if (_i < 3)
		ck_assert_uint_gt(stats.stale, 0);
	sim_close();
}
END_TEST

/* ---- room for rules ------------------------------------------------------------- */

static unsigned asked;

static int every_frame_is_the_last(void *context, uintptr_t address, struct incstack_rule *rule)
{
	(void)context;
	(void)address;
	asked++;
	*rule = (struct incstack_rule){.kind = INCSTACK_RULE_END};
	return 0;
}

static bool usr1_blocked(void)
{
	sigset_t now;
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &now), 0);
	return sigismember(&now, SIGUSR1);
}

static unsigned asked_quickly;

static int even_addresses(void *context, uintptr_t address, struct incstack_rule *rule)
{
	asked_quickly++;
	ck_assert(!usr1_blocked());
	if (address % 2)
		return INCSTACK_EUNWIND;
	every_frame_is_the_last(context, address, rule);
	asked--;
	return 0;
}

static int odd_addresses(void *context, uintptr_t address, struct incstack_rule *rule)
{
	ck_assert(usr1_blocked());
	ck_assert_uint_eq(address % 2, 1);
	return every_frame_is_the_last(context, address, rule);
}

static void sample_at(uintptr_t pc)
{
	uintptr_t sp = (uintptr_t)(sim.words + SIM_WORDS / 2);
	struct incstack_top top = {.pc = pc, .sp = sp, .fp = sp, .flags = INCSTACK_TOP_EXACT};
	sim.inside = true;
	ck_assert_int_eq(incstack_stack_sample(sim.s, 0, 1, &top), 0);
	sim.inside = false;
}

static void open_with(const struct incstack_embedder *embedder)
{
	struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = embedder};
	ck_assert_int_eq(incstack_runtime_create(&options, &sim.rt), 0);
	ck_assert_int_eq(incstack_stack_create(sim.rt, (uintptr_t)sim.words,
					       (uintptr_t)(sim.words + SIM_WORDS), &sim.s),
			 0);
	ck_assert_int_eq(incstack_stack_reserve(sim.s, 8 << 20), 0);
}

static void close_all(void)
{
	incstack_stack_destroy(sim.s);
	incstack_runtime_destroy(sim.rt);
	ck_assert_uint_eq(sim.live, 0);
}

/* A rule for which a sample has no room is used and counted; a reserve makes room. */
START_TEST(more_rules_than_room)
{
	enum { ADDRESSES = 20000 };
	struct incstack_embedder embedder = sim_embedder;
	embedder.code.find_rule = every_frame_is_the_last;
	open_with(&embedder);
	for (uintptr_t i = 0; i < ADDRESSES; i++)
		sample_at(SIM_CODE + i);
	uint64_t unkept = sim_stats().rules_unkept;
	ck_assert_uint_gt(unkept, 0);
	ck_assert_uint_lt(unkept, ADDRESSES);
	ck_assert_uint_eq(sim_stats().truncated, 0);
	ck_assert_uint_eq(asked, ADDRESSES);
	sample_at(SIM_CODE + ADDRESSES - 1);
	ck_assert_uint_eq(sim_stats().rules_unkept, unkept + 1);
	ck_assert_int_eq(incstack_stack_reserve(sim.s, 0), 0);
	sample_at(SIM_CODE + ADDRESSES - 1);
	sample_at(SIM_CODE + ADDRESSES - 1);
	ck_assert_uint_eq(sim_stats().rules_unkept, unkept + 1);
	ck_assert_uint_eq(asked, ADDRESSES + 2);
	close_all();
}
END_TEST

/* The look-up that needs no lock comes first, once, and no signal is blocked for it. */
START_TEST(quick_rules_first)
{
	enum { ADDRESSES = 1000 };
	struct incstack_embedder embedder = sim_embedder;
	embedder.code.find_rule = odd_addresses;
	embedder.code.find_rule_quickly = even_addresses;
	asked = asked_quickly = 0;
	open_with(&embedder);
	for (uintptr_t i = 0; i < 2 * ADDRESSES; i++)
		sample_at(SIM_CODE + i % ADDRESSES);
	ck_assert_uint_eq(asked_quickly, ADDRESSES);
	ck_assert_uint_eq(asked, ADDRESSES / 2);
	ck_assert_uint_eq(sim_stats().truncated, 0);
	close_all();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits");
	TCase *tc = tcase_create("random programs");
	tcase_add_loop_test(tc, no_limits, 0, SIM_VARIANTS);
	tcase_add_loop_test(tc, smallest_chunks, 0, SIM_VARIANTS);
	tcase_add_loop_test(tc, one_thunk, 0, SIM_VARIANTS);
	tcase_add_loop_test(tc, byte_limit, 0, SIM_VARIANTS);
	tcase_add_loop_test(tc, refusals_are_counted, 0, SIM_VARIANTS);
	tcase_add_loop_test(tc, polls_need_no_reserve, 0, SIM_VARIANTS);
	tcase_add_loop_test(tc, a_tree_is_released_once, 0, SIM_VARIANTS);
	tcase_add_loop_test(tc, room_is_there, 0, SIM_VARIANTS);
	tcase_add_loop_test(tc, unannounced_exits, 0, SIM_VARIANTS);
	tcase_add_test(tc, more_rules_than_room);
	tcase_add_test(tc, quick_rules_first);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
