/* SPDX-License-Identifier: MIT
 *
 * Tests the worked example of both papers (ICPE'15 figure 8, thesis figure 3.5): three samples,
 * eight steps, frames a, b, c, u, v. After every step it checks the tree, the current skeleton
 * object, and the patched slots. The stack is an array in which every frame has a frame pointer, so
 * each step is exactly that of the papers.
 */
#include <string.h>

#include "trace/hooks.h"
#include "trace/shared.h"
#include "trace/stack.h"
#include "run_suite.h"

/* Frames of four words, the base at the top of the array. Frame i (0 = entry)
 * has its frame pointer word at FP(i) and its return slot right above. */
static uintptr_t memory[64];
enum { ENTRY, A, B, C, U = C, V };
#define FP(i) ((uintptr_t)&memory[60 - 4 * (i)])
#define SLOT(i) ((uintptr_t *)(FP(i) + 8))
#define PC(letter, call) ((uintptr_t)(0x1000 * (letter) + (call)))

static struct incstack_runtime *rt;
static struct incstack_stack *s;

/* Frame i is called from its caller, which stands at pc. */
static void call(int i, uintptr_t pc)
{
	*(uintptr_t *)FP(i) = i ? FP(i - 1) : 0;
	*SLOT(i) = pc;
}

/* Frame i returns: through a thunk as the processor would go. */
static void ret(int i)
{
	if (!is_thunk(*SLOT(i)))
		return;
	struct incstack__cell *cell = thunk_cell(*SLOT(i));
	uintptr_t resume = incstack__returned(cell, *(uintptr_t *)FP(i), 0);
	*SLOT(i) = resume; /* dead from here on */
}

static void sample(uint64_t id, int i, uintptr_t pc)
{
	struct incstack_top top = {
		.pc = pc, .sp = FP(i) - 8, .fp = FP(i), .flags = INCSTACK_TOP_EXACT};
	ck_assert_int_eq(incstack_stack_sample(s, id, 1, &top), 0);
}

static object *cso(void)
{
	object *o = s->newest;
	while (o && !(o->flags & OBJECT_BARRIER))
		o = (object *)o->parent;
	return o;
}

static void check_patched(const char *frames)
{
	for (int i = ENTRY; i <= V; i++)
		ck_assert_msg(is_thunk(*SLOT(i)) == (frames[i] == '!'), "slot of frame %d, want %s",
			      i, frames);
	ck_assert_int_eq(incstack__stack_verify(s), 0);
}

static void check_object(const object *o, uintptr_t pc, bool filled)
{
	ck_assert_ptr_nonnull(o);
	ck_assert_uint_eq(o->function, pc);
	ck_assert_int_eq(!!(o->flags & INCSTACK_OBJECT_FILLED), filled);
}

static void setup(void)
{
	struct incstack_embedder embedder = {.size = sizeof(embedder), .code.frame_pointers = 1};
	struct incstack_options options = {
		.size = sizeof(options), .distance = 1, .embedder = &embedder};
	memset(memory, 0, sizeof(memory));
	ck_assert_int_eq(incstack_runtime_create(&options, &rt), 0);
	ck_assert_int_eq(incstack_stack_create(rt, (uintptr_t)memory, (uintptr_t)(memory + 64), &s),
			 0);
	call(ENTRY, 0);
	call(A, PC('e', 1));
}

static void teardown(void)
{
	incstack_stack_destroy(s);
	incstack_runtime_destroy(rt);
}

static void check_tree(void)
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->count, 3);
	ck_assert_uint_eq(tree->truncated, 0);
	const trace *t1 = tree->traces, *t2 = t1->next, *t3 = t2->next;
	ck_assert_uint_eq(t1->id, 1);
	ck_assert_uint_eq(t2->id, 2);
	ck_assert_uint_eq(t3->id, 3);
	check_object(t1->top, PC('c', 1), true);
	check_object(t1->top->parent, PC('b', 1), true);
	const object *a = t1->top->parent->parent;
	check_object(a, PC('a', 1), true);
	check_object(t2->top, PC('v', 1), true);
	check_object(t2->top->parent, PC('u', 1), true);
	check_object(t2->top->parent->parent, PC('b', 2), true);
	ck_assert_ptr_eq(t2->top->parent->parent->parent, a);
	check_object(t3->top, PC('b', 3), true);
	ck_assert_ptr_eq(t3->top->parent, a);
	check_object(a->parent, PC('e', 1), true);
	ck_assert_ptr_null(a->parent->parent);
	ck_assert(a->parent->flags & INCSTACK_OBJECT_BASE);
	incstack_tree_release(tree);
}

START_TEST(eight_steps)
{
	call(B, PC('a', 1));
	call(C, PC('b', 1));
	sample(1, C, PC('c', 1)); /* 1: c is filled, b a skeleton, c's slot patched */
	check_patched("...!.");
	check_object((*first_trace(s))->top, PC('c', 1), true);
	const object *b1 = cso();
	check_object(b1, PC('b', 1), false);
	ck_assert_ptr_eq((*first_trace(s))->top->parent, b1);

	ret(C); /* 2: b is filled, a becomes the skeleton */
	check_patched("..!..");
	check_object(b1, PC('b', 1), true);
	const object *a = cso();
	check_object(a, PC('a', 1), false);
	ck_assert_ptr_eq(b1->parent, a);

	call(U, PC('b', 2));
	call(V, PC('u', 1));
	sample(2, V, PC('v', 1)); /* 3: u is a new skeleton in front of a */
	check_patched("..!.!");
	const object *u = cso();
	check_object(u, PC('u', 1), false);
	ck_assert_ptr_eq(u->parent, a);
	ck_assert_ptr_eq((*first_trace(s))->next->top->parent, u);

	ret(V); /* 4: u is filled, b' comes between u and a */
	check_patched("..!!.");
	const object *b2 = cso();
	check_object(u, PC('u', 1), true);
	check_object(b2, PC('b', 2), false);
	ck_assert_ptr_eq(u->parent, b2);
	ck_assert_ptr_eq(b2->parent, a);

	ret(U); /* 5: b' is filled; a's callee is still patched */
	check_patched("..!..");
	check_object(b2, PC('b', 2), true);
	ck_assert_ptr_eq(b2->parent, a);
	ck_assert_ptr_eq(cso(), a);

	sample(3, B, PC('b', 3)); /* 6: b'' hangs directly on a */
	check_patched("..!..");
	ck_assert_ptr_eq((*first_trace(s))->next->next->top->parent, a);
	ck_assert_ptr_eq(cso(), a);

	ret(B); /* 7: a is filled, its caller a skeleton */
	check_patched(".!...");
	check_object(a, PC('a', 1), true);
	ck_assert_ptr_eq(a->parent, cso());

	ret(A); /* 8: the entry function is the last */
	check_patched(".....");
	check_tree();
}
END_TEST

START_TEST(retrieve_completes)
{
	call(B, PC('a', 1));
	call(C, PC('b', 1));
	sample(1, C, PC('c', 1));
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	const object *o = tree->traces->top;
	uintptr_t want[] = {PC('c', 1), PC('b', 1), PC('a', 1), PC('e', 1)};
	for (int i = 0; i < 4; i++, o = o->parent)
		check_object(o, want[i], true);
	ck_assert_ptr_null(o);
	incstack_tree_release(tree);
	check_patched("...!."); /* the barrier stays for the next sample */
	sample(2, C, PC('c', 2));
	ret(C);
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	check_object(tree->traces->top->parent->parent->parent, PC('e', 1), true);
	incstack_tree_release(tree);
}
END_TEST

/* An unannounced longjmp: b is popped without a return. What the trace could not see yet is cut,
 * and the trace does not continue with other frames. */
START_TEST(unannounced_exit)
{
	call(B, PC('a', 1));
	call(C, PC('b', 1));
	call(V, PC('c', 1));
	sample(1, V, PC('v', 1));
	*SLOT(V) = 0;
	call(B, PC('a', 2)); /* a goes on and calls something else there */
	sample(2, B, PC('b', 9));
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->truncated, 1);
	const object *o = tree->traces->top->parent;
	check_object(o, PC('c', 1), true);
	ck_assert(o->flags & INCSTACK_OBJECT_TRUNCATED);
	ck_assert_ptr_null(o->parent);
	check_object(tree->traces->next->top->parent, PC('a', 2), true);
	incstack_tree_release(tree);
	struct incstack_stats stats = {.size = sizeof(stats)};
	ck_assert_int_eq(incstack_stack_stats(s, &stats), 0);
	ck_assert_uint_eq(stats.stale, 1);
}
END_TEST

/* The trace of v, which was sampled: v and c are known, and the rest if `all`. */
static void check_trace_of_v(bool all)
{
	const uintptr_t want[] = {PC('v', 1), PC('c', 1), PC('b', 1), PC('a', 1), PC('e', 1)};
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->truncated, all ? 0 : 1);
	const object *o = tree->traces->top;
	for (int i = 0; i < (all ? 5 : 2); i++, o = o->parent) {
		check_object(o, want[i], true);
		ck_assert_int_eq(!!(o->flags & INCSTACK_OBJECT_TRUNCATED), !all && i == 1);
	}
	ck_assert_ptr_null(o);
	incstack_tree_release(tree);
}

static void sample_v(void)
{
	call(B, PC('a', 1));
	call(C, PC('b', 1));
	call(V, PC('c', 1));
	sample(1, V, PC('v', 1));
	check_patched("....!");
}

/* The thread is held, so that another one retrieves its traces. A jump has popped b unannounced,
 * and a has called it again. The frame is larger now: its first words are new, and v's slot, in
 * it, still holds the thunk. */
START_TEST(held_after_unannounced_exit)
{
	const struct incstack_top top = {
		.pc = PC('b', 9), .sp = FP(V) - 8, .fp = FP(B), .flags = INCSTACK_TOP_EXACT};
	sample_v();
	call(B, PC('a', 2));
	*SLOT(C) = PC('x', 1);
	*(uintptr_t *)FP(C) = 0;
	ck_assert_int_eq(incstack__stack_interrupted_at(s, &top), 0);
	check_trace_of_v(false);
}
END_TEST

START_TEST(held_without_exit)
{
	const struct incstack_top top = {
		.pc = PC('v', 2), .sp = FP(V) - 8, .fp = FP(V), .flags = INCSTACK_TOP_EXACT};
	sample_v();
	ck_assert_int_eq(incstack__stack_interrupted_at(s, &top), 0);
	check_patched("....!");
	check_trace_of_v(true);
}
END_TEST

/* It is unknown which frames are gone: no return is intercepted any more, and nothing is
 * guessed. */
START_TEST(held_in_unknown_code)
{
	sample_v();
	ck_assert_int_eq(incstack__stack_interrupted_at(s, NULL), 0);
	check_patched(".....");
	ck_assert_uint_eq(*SLOT(V), PC('c', 1));
	check_trace_of_v(false);
}
END_TEST

START_TEST(announced_exit)
{
	call(B, PC('a', 1));
	call(C, PC('b', 1));
	call(V, PC('c', 1));
	sample(1, V, PC('v', 1));
	ck_assert_int_eq(incstack_stack_unwinding_to(s, FP(B) - 8), 0);
	call(C, PC('b', 7));
	sample(2, C, PC('x', 1));
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->truncated, 0);
	uintptr_t want[] = {PC('v', 1), PC('c', 1), PC('b', 1), PC('a', 1), PC('e', 1)};
	const object *o = tree->traces->top;
	for (int i = 0; i < 5; i++, o = o->parent)
		check_object(o, want[i], true);
	check_object(tree->traces->next->top->parent, PC('b', 7), true);
	incstack_tree_release(tree);
}
END_TEST

START_TEST(bad_input)
{
	struct incstack_top top = {.pc = 1, .sp = FP(A) - 7, .fp = FP(A)};
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_sample(NULL, 0, 0, &top), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_sample(s, 0, 0, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_sample(s, 0, 0, &top), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_retrieve(s, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_retrieve(NULL, &tree), INCSTACK_EINVAL);
	incstack_tree_release(NULL);
	ck_assert_int_eq(incstack_runtime_create(NULL, &rt), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_create(rt, 8, 8, &s), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_unwinding_to(s, 8), INCSTACK_ERANGE);
	ck_assert_int_eq(incstack_stack_slot_write(s, NULL, 0), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_set_mode(s, 9), INCSTACK_EINVAL);
	s->owner++;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), INCSTACK_ETHREAD);
	s->owner--;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("worked example");
	TCase *tc = tcase_create("stack of frame pointers, distance 1");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, eight_steps);
	tcase_add_test(tc, retrieve_completes);
	tcase_add_test(tc, unannounced_exit);
	tcase_add_test(tc, held_after_unannounced_exit);
	tcase_add_test(tc, held_without_exit);
	tcase_add_test(tc, held_in_unknown_code);
	tcase_add_test(tc, announced_exit);
	tcase_add_test(tc, bad_input);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
