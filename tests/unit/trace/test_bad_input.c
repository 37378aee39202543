/* SPDX-License-Identifier: MIT
 *
 * Tests arguments that are invalid: null, another thread, misaligned or foreign addresses,
 * impossible sizes and options. Every public function returns the error that its header names,
 * and leaves the stack as it was.
 */
#include <pthread.h>

#include <incstack/native.h>

#include "answers.h"
#include "run_suite.h"
#include "simulated.h"

static struct incstack_options options;
static struct incstack_embedder embedder;
static struct incstack_runtime *rt;

static int create(void)
{
	int error = incstack_runtime_create(&options, &rt);
	if (!error)
		incstack_runtime_destroy(rt);
	return error;
}

/* One field is wrong. */
#define WRONG(field, value) (reset_options(), (field) = (value), create())

static void reset_options(void)
{
	embedder = sim_embedder;
	options = (struct incstack_options){
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
}

START_TEST(options_are_checked)
{
	reset_options();
	CHECK_ANSWERS(SAYS(0, create()), SAYS(INCSTACK_EINVAL, incstack_runtime_create(NULL, &rt)),
		      SAYS(INCSTACK_EINVAL, incstack_runtime_create(&options, NULL)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.size, 0)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.size, 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.size, sizeof(options) - 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.size, sizeof(options) + 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.embedder, NULL)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.mode, INCSTACK_MODE_EMBEDDER)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.mode, 99)),
		      SAYS(INCSTACK_EINVAL, WRONG(options.distance, INCSTACK_DISTANCE_MAX + 1)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.size, 0)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.size, sizeof(embedder) - 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.size, sizeof(embedder) + 8)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.memory.allocate, NULL)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.memory.release, NULL)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.memory.allocate_traces, sim_allocate)),
		      SAYS(INCSTACK_EINVAL, WRONG(embedder.code.frame_pointers, 1)));
	reset_options();
	options.stack_bytes = 1000;
	options.chunk_bytes = 2000;
	ck_assert_int_eq(create(), INCSTACK_EINVAL);
}
END_TEST

/* A runtime without rules has no machine stacks, because nobody has said that frame pointers are kept. */
START_TEST(rules_are_asked_for)
{
	uintptr_t words[16];
	const uintptr_t low = (uintptr_t)words, high = (uintptr_t)(words + 16);
	struct incstack_stack *created;
	reset_options();
	embedder.code.find_rule = NULL;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	ck_assert_int_eq(incstack_stack_create(rt, low, high, &created), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_create(rt, 0, 0, &created), INCSTACK_EINVAL);
	incstack_runtime_destroy(rt);
	embedder.code.frame_pointers = 1;
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	ck_assert_int_eq(incstack_stack_create(rt, low, high, &created), 0);
	incstack_stack_destroy(created);
	incstack_runtime_destroy(rt);
}
END_TEST

/* Harmless oddities: sizes out of bounds. */
START_TEST(options_are_tolerant)
{
	static const uint32_t chunks[] = {1, 513, 4095, 1u << 20};
	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		ck_assert_int_eq(sim_open((struct incstack_options){.distance = 1,
								    .chunk_bytes = chunks[i]}),
				 0);
		ck_assert_int_eq(sim_sample(), 0);
		ck_assert_int_eq(sim_retrieve(), 0);
		sim_close();
	}
	ck_assert_int_eq(sim_open((struct incstack_options){.distance = 1, .stack_bytes = 1}), 0);
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_close();
}
END_TEST

static struct incstack_top top_of_stack(void)
{
	return (struct incstack_top){.pc = sim_top()->pc,
				     .sp = sim_top()->sp,
				     .fp = sim_top()->fp,
				     .flags = INCSTACK_TOP_EXACT};
}

static int sample_with(uintptr_t pc, uintptr_t sp, uintptr_t slot, uint32_t flags)
{
	struct incstack_top top = top_of_stack();
	top.pc = pc;
	top.sp = sp;
	top.slot = slot;
	top.flags = flags;
	return incstack_stack_sample(sim.s, 1, 1, &top);
}

static void open_stack(void)
{
	ck_assert_int_eq(sim_open((struct incstack_options){.distance = 1}), 0);
	while (sim.depth < 10)
		sim_call();
	ck_assert_int_eq(sim_sample(), 0);
}

/* The barrier is live all the time, and its trace comes out right. */
static void close_stack(void)
{
	ck_assert_int_eq(sim_retrieve(), 0);
	ck_assert_uint_eq(sim_stats().truncated, 0);
	sim_close();
}

START_TEST(stacks_are_checked)
{
	struct incstack_stack *other;
	struct incstack_stats stats = {.size = 1};
	open_stack();
	incstack_runtime_destroy(NULL);
	incstack_stack_destroy(NULL);
	incstack_stack_abandon(NULL);
	incstack_tree_release(NULL);
	CHECK_ANSWERS(
		SAYS(INCSTACK_EINVAL, incstack_stack_create(NULL, 8, 16, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 8, 16, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 16, 16, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 24, 16, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 9, 16, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create(sim.rt, 8, 17, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create_embedder(sim.rt, NULL, NULL, &other)),
		SAYS(INCSTACK_EINVAL, incstack_stack_set_owner(NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_set_mode(NULL, INCSTACK_MODE_FULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_set_mode(sim.s, INCSTACK_MODE_EMBEDDER)),
		SAYS(INCSTACK_EINVAL, incstack_stack_set_mode(sim.s, (enum incstack_mode)77)),
		SAYS(INCSTACK_EINVAL, incstack_stack_reserve(NULL, 1)),
		SAYS(INCSTACK_ELIMIT, incstack_stack_reserve(sim.s, SIZE_MAX)),
		SAYS(0, (int)incstack_stack_room(NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_stats(NULL, &stats)),
		SAYS(INCSTACK_EINVAL, incstack_stack_stats(sim.s, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_stats(sim.s, &stats)));
	close_stack();
}
END_TEST

START_TEST(samples_are_checked)
{
	struct incstack_tree *tree;
	struct incstack_top top;
	open_stack();
	uintptr_t pc = sim_top()->pc, sp = sim_top()->sp;
	top = top_of_stack();
	CHECK_ANSWERS(SAYS(INCSTACK_EINVAL, incstack_stack_sample(NULL, 1, 1, &top)),
		      SAYS(INCSTACK_EINVAL, incstack_stack_sample(sim.s, 1, 1, NULL)),
		      SAYS(INCSTACK_EINVAL, sample_with(0, sp, 0, INCSTACK_TOP_EXACT)),
		      SAYS(INCSTACK_EINVAL, sample_with(pc, sp + 1, 0, INCSTACK_TOP_EXACT)),
		      SAYS(INCSTACK_EINVAL, sample_with(pc, sp, 3, INCSTACK_TOP_EXACT)),
		      SAYS(INCSTACK_EINVAL, sample_with(pc, sp, 0, INCSTACK_TOP_DECODE_NOW)),
		      SAYS(INCSTACK_EUNWIND, sample_with(77, sp, 0, INCSTACK_TOP_INTERRUPTED)),
		      SAYS(INCSTACK_EINVAL, incstack_stack_retrieve(NULL, &tree)),
		      SAYS(INCSTACK_EINVAL, incstack_stack_retrieve(sim.s, NULL)));
	ck_assert_uint_eq(sim_stats().lost_unwind, 1);
	close_stack();
}
END_TEST

START_TEST(addresses_are_checked)
{
	uintptr_t low = (uintptr_t)sim.words, high = (uintptr_t)(sim.words + SIM_WORDS);
	static struct incstack_runtime *other;
	open_stack();
	uintptr_t slot = sim_top()->slot, *odd = (uintptr_t *)(slot + 4);
	reset_options();
	ck_assert_int_eq(incstack_runtime_create(&options, &other), 0);
	CHECK_ANSWERS(
		SAYS(0, (int)incstack_slot_read(NULL)), SAYS(0, (int)incstack_slot_read(odd)),
		SAYS(INCSTACK_EINVAL, incstack_stack_slot_write(NULL, (uintptr_t *)slot, 1)),
		SAYS(INCSTACK_EINVAL, incstack_stack_slot_write(sim.s, NULL, 1)),
		SAYS(INCSTACK_EINVAL, incstack_stack_slot_write(sim.s, odd, 1)),
		SAYS(INCSTACK_ERANGE, incstack_stack_slot_write(sim.s, (uintptr_t *)high, 1)),
		SAYS(INCSTACK_ERANGE, incstack_stack_slot_write(sim.s, (uintptr_t *)(low - 8), 1)),
		SAYS(INCSTACK_EINVAL, incstack_stack_unwinding_to(NULL, slot)),
		SAYS(INCSTACK_ERANGE, incstack_stack_unwinding_to(sim.s, low - 8)),
		SAYS(INCSTACK_ERANGE, incstack_stack_unwinding_to(sim.s, high + 8)),
		SAYS(INCSTACK_EINVAL, incstack_stack_returned(NULL, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_returned(sim.s, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_frame_moved(NULL, slot, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_frame_moved(sim.s, 0, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_frame_moved(sim.s, slot, slot + 1)),
		SAYS(INCSTACK_ERANGE, incstack_stack_frame_moved(sim.s, slot, high)),
		SAYS(INCSTACK_ERANGE, incstack_stack_frame_moved(sim.s, low - 8, slot)),
		SAYS(INCSTACK_EINVAL, incstack_stack_moved(NULL, low, high)),
		SAYS(INCSTACK_EINVAL, incstack_stack_moved(sim.s, high, low)),
		SAYS(INCSTACK_EINVAL, incstack_stack_moved(sim.s, low + 1, high)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_code_unloading(NULL, sim.s, 1, 2)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_code_unloading(sim.rt, sim.s, 2, 2)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_code_unloading(other, sim.s, 1, 2)));
	incstack_runtime_destroy(other);
	close_stack();
}
END_TEST

static void *as_another_thread(void *argument)
{
	struct incstack_tree *tree;
	struct incstack_top top = top_of_stack();
	uintptr_t slot = sim_top()->slot;
	(void)argument;
	CHECK_ANSWERS(
		SAYS(INCSTACK_ETHREAD, incstack_stack_sample(sim.s, 1, 1, &top)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_retrieve(sim.s, &tree)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_reserve(sim.s, 1)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_set_mode(sim.s, INCSTACK_MODE_FULL)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_slot_write(sim.s, (uintptr_t *)slot, 1)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_unwinding_to(sim.s, slot)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_returned(sim.s, slot)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_frame_moved(sim.s, slot, slot)),
		SAYS(INCSTACK_ETHREAD, incstack_stack_moved(sim.s, 8, 16)),
		SAYS(INCSTACK_ETHREAD, incstack_runtime_code_unloading(sim.rt, sim.s, 1, 2)));
	ck_assert_uint_eq(incstack_slot_read((uintptr_t *)slot), sim_top()->resume);
	return NULL;
}

START_TEST(owners_are_checked)
{
	pthread_t thread;
	open_stack();
	ck_assert_int_eq(pthread_create(&thread, NULL, as_another_thread, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	close_stack();
}
END_TEST

static void *own_and_go_on(void *argument)
{
	(void)argument;
	ck_assert_int_eq(incstack_stack_set_owner(sim.s), 0);
	for (int i = 0; i < 500; i++)
		sim_step();
	ck_assert_int_eq(sim_retrieve(), 0);
	return NULL;
}

START_TEST(owners_change)
{
	pthread_t thread;
	open_stack();
	ck_assert_int_eq(pthread_create(&thread, NULL, own_and_go_on, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(sim_retrieve(), INCSTACK_ETHREAD);
	ck_assert_int_eq(incstack_stack_set_owner(sim.s), 0);
	close_stack();
}
END_TEST

START_TEST(native_is_checked)
{
	struct incstack_rule rule;
	struct incstack_frame frames[4];
	struct incstack_stack *mine;
	uintptr_t word;
	reset_options();
	CHECK_ANSWERS(
		SAYS(INCSTACK_EINVAL,
		     incstack_native_embedder()->code.find_rule(NULL, (uintptr_t)create, NULL)),
		SAYS(INCSTACK_EUNWIND, incstack_native_embedder()->code.find_rule(NULL, 0, &rule)),
		SAYS(INCSTACK_EUNWIND,
		     incstack_native_embedder()->code.find_rule(NULL, UINTPTR_MAX, &rule)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_create_native(NULL, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_runtime_create_native(&options, &rt)),
		SAYS(INCSTACK_EINVAL, incstack_native_stack_range(NULL, &word)),
		SAYS(INCSTACK_EINVAL, incstack_native_stack_range(&word, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_stack_create_native(NULL, &mine)),
		SAYS(INCSTACK_EINVAL,
		     incstack_native_embedder()->signals.interrupted(NULL, NULL, NULL)),
		SAYS(INCSTACK_EINVAL, incstack_native_walk(NULL, 4)),
		SAYS(INCSTACK_EINVAL, incstack_native_walk(frames, 0)),
		SAYS(INCSTACK_EINVAL, incstack_native_walk(frames, -1)));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bad input");
	TCase *tc = tcase_create("is refused");
	tcase_add_test(tc, options_are_checked);
	tcase_add_test(tc, rules_are_asked_for);
	tcase_add_test(tc, options_are_tolerant);
	tcase_add_test(tc, stacks_are_checked);
	tcase_add_test(tc, samples_are_checked);
	tcase_add_test(tc, addresses_are_checked);
	tcase_add_test(tc, owners_are_checked);
	tcase_add_test(tc, owners_change);
	tcase_add_test(tc, native_is_checked);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
