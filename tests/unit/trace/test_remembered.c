/* SPDX-License-Identifier: MIT
 *
 * Tests samples that share the objects of an earlier walk (remembered.h): random programs whose stacks come
 * back, with every frame compared, and what makes the library forget a walk.
 */
#include "run_suite.h"
#include "simulated.h"

enum { STEPS = 40000, SAMPLES = 40 };

static uint64_t shared;

/* Counts the pending traces whose top belongs to an earlier trace. */
static void count_shared(void)
{
	const struct incstack_tree *tree = incstack_stack_tree(sim.s);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		const struct incstack_trace *other = tree->traces;
		while (other != t && other->top != t->top)
			other = other->next;
		shared += other != t;
	}
}

static void open_few(struct incstack_options options)
{
	sim.usual = sim.few = sim.by_registers = true;
	shared = 0;
	ck_assert_int_eq(sim_open(options), 0);
}

static void run(int steps)
{
	for (int i = 0; i < steps; i++) {
		if (sim.pending == 0)
			ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 20), 0);
		sim_step();
		if (sim.pending >= SIM_TRACES) {
			count_shared();
			ck_assert_int_eq(sim_retrieve(), 0);
		}
	}
	ck_assert_int_eq(sim_retrieve(), 0);
}

START_TEST(at_random)
{
	open_few(sim_variant(_i));
	run(STEPS);
	sim_nothing_is_lost();
#ifndef INCSTACK_HOSTILE /* no fast walk */
	if (_i < 3)      /* a walk over 31 frames meets a frame pointer */
		ck_assert_uint_gt(shared, sim.taken / 100);
#endif
	sim_close();
}
END_TEST

/* Samples the same stack until a walk is shared, so the next sample would share it, too. */
static void make_shared(void)
{
	open_few((struct incstack_options){.mode = INCSTACK_MODE_PATCH, .distance = 4});
	while (sim.depth < SIM_DEPTH / 2)
		sim_call();
	while (sim_uses_fp(sim_top()->function))
		sim_call();
	ck_assert_int_eq(incstack_stack_reserve(sim.s, 1 << 20), 0);
	for (int i = 0; i < SAMPLES; i++)
		ck_assert_int_eq(sim_sample(), 0);
	count_shared();
#ifndef INCSTACK_HOSTILE
	ck_assert_uint_gt(shared, 0);
#endif
}

/* Other code may have other rules, and then the same words are other frames. */
START_TEST(rules_that_change)
{
	make_shared();
	const unsigned asked = sim.asked;
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_uint_eq(sim.asked, asked);
	ck_assert_int_eq(incstack_runtime_code_unloading(sim.rt, NULL, 0, UINTPTR_MAX), 0);
	ck_assert_int_eq(sim_sample(), 0);
	ck_assert_uint_gt(sim.asked, asked);
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_nothing_is_lost();
	sim_close();
}
END_TEST

/* The objects of a tree belong to its owner, so the samples after a retrieve have objects of their own. */
START_TEST(objects_are_handed_over)
{
	struct incstack_tree *tree;
	make_shared();
	ck_assert_int_eq(incstack_stack_retrieve(sim.s, &tree), 0);
	incstack_tree_release(tree);
	sim.pending = 0;
	ck_assert_int_eq(sim_sample(), 0);
	const struct incstack_tree *open = incstack_stack_tree(sim.s);
	const struct chunk *first =
		(const struct chunk *)((const char *)open - offsetof(struct chunk, tree));
	ck_assert_ptr_null(first->next);
	ck_assert(open->traces->top >= first->objects && open->traces->top < sim.s->arena.object);
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_close();
}
END_TEST

/* Each of the slots of a walk is compared. */
START_TEST(a_word_that_changes)
{
	make_shared();
	for (unsigned i = 1; i < 4; i++) {
		struct sim_frame *frame = sim_top() - i;
		const uintptr_t *slot = (const uintptr_t *)(frame + 1)->slot;
		if (is_thunk(*slot) || sim_uses_fp(frame->function))
			continue;
		sim_stand(frame);
		*(uintptr_t *)(frame + 1)->slot = (frame + 1)->resume = frame->pc;
		ck_assert_int_eq(sim_sample(), 0);
	}
	ck_assert_int_eq(sim_retrieve(), 0);
	sim_nothing_is_lost();
	sim_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("remembered walks");
	TCase *tests = tcase_create("remembered walks");
	tcase_add_loop_test(tests, at_random, 0, SIM_VARIANTS);
	tcase_add_test(tests, rules_that_change);
	tcase_add_test(tests, objects_are_handed_over);
	tcase_add_test(tests, a_word_that_changes);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
