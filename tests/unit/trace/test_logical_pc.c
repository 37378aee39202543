/* SPDX-License-Identifier: MIT
 *
 * Tests return slots that the embedder itself has patched, for example for a lazy
 * deoptimization. A walk that meets such a slot reports the frame's original position.
 */
#include <string.h>

#include <incstack/incstack.h>

#include "run_suite.h"

/* Frames of four words that keep their frame pointers; frame 0 is the base. */
enum { FRAMES = 12, PATCHED = 5, STUB = 0x7777 };
static uintptr_t memory[FRAMES * 4 + 8];
#define FP(i) ((uintptr_t)&memory[FRAMES * 4 - 4 * (i)])
#define SLOT(i) ((uintptr_t *)(FP(i) + 8))
#define PC(i) ((uintptr_t)(0x1000 * (i) + 5))

static uintptr_t logical_pc(void *context, uintptr_t slot, uintptr_t pc)
{
	(void)context;
	return pc == STUB && slot == (uintptr_t)SLOT(PATCHED) ? PC(PATCHED) : pc;
}

static void check(enum incstack_mode mode, uint32_t distance)
{
	struct incstack_embedder embedder = {
		.size = sizeof(embedder), .code.frame_pointers = 1, .code.logical_pc = logical_pc};
	struct incstack_options options = {.size = sizeof(options),
					   .embedder = &embedder,
					   .mode = (uint32_t)mode,
					   .distance = distance};
	struct incstack_runtime *rt;
	struct incstack_stack *s;
	struct incstack_tree *tree;
	memset(memory, 0, sizeof(memory));
	for (int i = 1; i < FRAMES; i++) {
		*(uintptr_t *)FP(i) = FP(i - 1);
		*SLOT(i) = i == PATCHED ? STUB : PC(i);
	}
	struct incstack_top top = {
		.pc = PC(FRAMES), .sp = FP(FRAMES - 1) - 8, .fp = FP(FRAMES - 1)};
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	ck_assert_int_eq(incstack_stack_create(rt, (uintptr_t)memory,
					       (uintptr_t)(memory + FRAMES * 4 + 8), &s),
			 0);
	for (uint64_t id = 0; id < 3; id++)
		ck_assert_int_eq(incstack_stack_sample(s, id, 1, &top), 0);
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->count, 3);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		const struct incstack_frame_object *o = t->top;
		for (int i = FRAMES; i >= 1; i--, o = o->parent) {
			ck_assert_ptr_nonnull(o);
			ck_assert_uint_eq(o->function, PC(i));
		}
	}
	incstack_tree_release(tree);
	incstack_stack_destroy(s);
	incstack_runtime_destroy(rt);
}

START_TEST(every_walk)
{
	check(INCSTACK_MODE_FULL, 0);
	check(INCSTACK_MODE_VALIDATE, 0);
	for (uint32_t distance = 1; distance <= FRAMES; distance++)
		check(INCSTACK_MODE_PATCH, distance);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("logical_pc");
	TCase *tc = tcase_create("patched by the embedder");
	tcase_add_test(tc, every_walk);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
