/* SPDX-License-Identifier: MIT
 *
 * Tests samples on a stack with unknown bounds that looks like that of a small coroutine
 * library: it is filled with a pattern, and an exit function's address lies below the entry's.
 * That address is not the return address of a call, so the rule found for it belongs to another
 * function and may lead anywhere. A walk must end there and read only mapped memory.
 */
#include <sys/mman.h>

#include "../unit/run_suite.h"
#include "traced.h"

enum { BYTES = 64 << 10 };

void strange_switch(void **save, void *to);
extern const char strange_exit[]; /* right behind a function that calls and never returns */
__asm__(".text\n.globl strange_switch\nstrange_switch:\n\t.cfi_startproc\n\t"
	"push %rbp\n\tpush %rbx\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t"
	"mov %rsp, (%rdi)\n\tmov %rsi, %rsp\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n\t"
	".cfi_endproc\n"
	"strange_fatal:\n\t.cfi_startproc\n\t.cfi_def_cfa rbp, 16\n\t.cfi_offset rbp, -16\n\t"
	"call strange_switch\n\t.cfi_endproc\n"
	".globl strange_exit\nstrange_exit:\n\tud2\n");

static void *main_sp, *coroutine_sp;
static struct incstack_stack *sampled;
static int result;

__attribute__((noinline)) static void sample(void)
{
	const uintptr_t *fp = __builtin_frame_address(0);
	struct incstack_top top = {.pc = fp[1], .sp = (uintptr_t)(fp + 2), .fp = fp[0]};
	result = incstack_stack_sample(sampled, 0, 1, &top);
}

/* The second runs it again: the coroutine has come back from it and gone on. */
static void entry(void)
{
	for (;;) {
		sample();
		strange_switch(&coroutine_sp, main_sp);
	}
}

/* A stack painted with the byte, and nothing mapped behind it. */
static char *make_stack(int paint)
{
	char *memory =
		mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(munmap(memory + BYTES, BYTES), 0);
	memset(memory, paint, BYTES);
	uintptr_t *sp = (uintptr_t *)(memory + BYTES) - 2;
	*--sp = (uintptr_t)strange_exit;
	*--sp = (uintptr_t)entry;
	coroutine_sp = sp - 6;
	return memory;
}

static const int paints[] = {0xa5, 0x00, 0xff, 0x7f};
enum { PAINTS = 4 };

static void run_there(int paint)
{
	char *memory = make_stack(paint);
	for (int i = 0; i < 3; i++) {
		strange_switch(&main_sp, coroutine_sp);
		ck_assert_int_eq(result, 0);
	}
	ck_assert_int_eq(munmap(memory, BYTES), 0);
}

static void check_traces(void)
{
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(sampled, &tree), 0);
	ck_assert_uint_eq(tree->count, 3);
	for (const struct incstack_trace *t = tree->traces; t; t = t->next) {
		const struct incstack_frame_object *o = t->top;
		ck_assert_uint_gt(o->function, (uintptr_t)entry);
		ck_assert_ptr_nonnull(o->parent);
		ck_assert_uint_eq(o->parent->function, (uintptr_t)strange_exit);
	}
	incstack_tree_release(tree);
}

/* The stack of the thread is known, that of the sample is not. */
START_TEST(beside_a_known_stack)
{
	traced_open(1, _i / PAINTS ? INCSTACK_MODE_VALIDATE : INCSTACK_MODE_PATCH);
	sampled = traced_stack;
	run_there(paints[_i % PAINTS]);
	check_traces();
	ck_assert_uint_eq(incstack__stack_broken(traced_stack), 0);
	traced_close();
}
END_TEST

START_TEST(anywhere)
{
	traced_open(1, INCSTACK_MODE_PATCH);
	ck_assert_int_eq(incstack_stack_create(traced_runtime, 0, 0, &sampled), 0);
	ck_assert_int_eq(incstack_stack_set_mode(sampled, INCSTACK_MODE_PATCH), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_stack_set_mode(sampled, INCSTACK_MODE_FULL), 0);
	run_there(paints[_i]);
	check_traces();
	ck_assert_int_eq(incstack__stack_verify(sampled), 0);
	incstack_stack_destroy(sampled);
	traced_close();
}
END_TEST

/* On such a stack a walk may be as long as on any other: over several pages, frame by frame, to the
 * end. */
static int depth;
__attribute__((noinline)) static int descend(int n)
{
	volatile char some[600];
	some[0] = (char)n;
	if (n == 0)
		traced_sample();
	else
		depth += descend(n - 1);
	return some[0] + 1;
}

START_TEST(complete)
{
	traced_open(1, INCSTACK_MODE_PATCH);
	struct incstack_stack *known = traced_stack;
	ck_assert_int_eq(incstack_stack_create(traced_runtime, 0, 0, &traced_stack), 0);
	for (int i = 0; i < 5; i++)
		descend(40 * i);
	ck_assert_int_eq(traced_check(), 0);
	incstack_stack_destroy(traced_stack);
	traced_stack = known;
	traced_close();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("strange_stack");
	TCase *t = tcase_create("strange_stack");

	tcase_add_loop_test(t, beside_a_known_stack, 0, 2 * PAINTS);
	tcase_add_loop_test(t, anywhere, 0, PAINTS);
	tcase_add_test(t, complete);
	suite_add_tcase(s, t);
	return run_suite(s);
}
