/* SPDX-License-Identifier: MIT
 *
 * Tests unusual frames with barriers on the stack: slots inherited by tail calls, alloca,
 * realigned stacks, a return address that is not directly below the CFA, and a hundred thousand
 * frames.
 */
#include <alloca.h>
#include <pthread.h>

#include "../unit/run_suite.h"
#include "traced.h"

#define NOINLINE __attribute__((noinline))
#define KEEP(x) __asm__ volatile("" : "+r"(x))

static const unsigned distances[] = {1, 2, 3, 0};
enum { DISTANCES = 4 };

void sample_for_asm(void);
void sample_for_asm(void)
{
	traced_sample();
}

/* ---- functions whose frames only an assembler can make ------------------------------- */

/* first samples, and jumps to second: the slot is patched and then inherited. */
int tail_first(void);
/* Its return address lies 32 bytes below the caller's frame, not 8. */
int odd_place(void);
/* Pushes around a call, without a frame. */
int pushes(void);

__asm__(".text\n.globl tail_first\ntail_first:\n\t.cfi_startproc\n\t"
	"subq $8, %rsp\n\t.cfi_adjust_cfa_offset 8\n\tcall sample_for_asm\n\t"
	"addq $8, %rsp\n\t.cfi_adjust_cfa_offset -8\n\tjmp tail_second\n\t.cfi_endproc\n"
	"tail_second:\n\t.cfi_startproc\n\t"
	"subq $40, %rsp\n\t.cfi_adjust_cfa_offset 40\n\tcall sample_for_asm\n\t"
	"movl $21, %eax\n\taddq $40, %rsp\n\t.cfi_adjust_cfa_offset -40\n\tret\n\t"
	".cfi_endproc\n"
	".globl odd_place\nodd_place:\n\t.cfi_startproc\n\t"
	"popq %r11\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_register rip, r11\n\t"
	"subq $24, %rsp\n\t.cfi_adjust_cfa_offset 24\n\t"
	"pushq %r11\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_offset rip, -32\n\t"
	"call sample_for_asm\n\tcall sample_for_asm\n\t"
	"popq %r11\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_register rip, r11\n\t"
	"addq $24, %rsp\n\t.cfi_adjust_cfa_offset -24\n\t"
	"pushq %r11\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_offset rip, -8\n\t"
	"movl $22, %eax\n\tret\n\t.cfi_endproc\n"
	".globl pushes\npushes:\n\t.cfi_startproc\n\t"
	"pushq %rbx\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_rel_offset rbx, 0\n\tmovl $23, %ebx\n\t"
	"call sample_for_asm\n\tpushq $1\n\t.cfi_adjust_cfa_offset 8\n\tpushq $2\n\t"
	".cfi_adjust_cfa_offset 8\n\tcall sample_for_asm\n\tmovl %ebx, %eax\n\t"
	"addq $16, %rsp\n\t.cfi_adjust_cfa_offset -16\n\tcall sample_for_asm\n\t"
	"movl %ebx, %eax\n\tpopq %rbx\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_restore rbx\n\tret\n\t"
	".cfi_endproc\n");

/* ---- functions of the compiler --------------------------------------------------------- */

static NOINLINE int with_alloca(int n)
{
	int sum = 0;
	for (int i = 1; i <= n; i++) {
		char *memory = alloca((size_t)i * 24);
		memory[0] = (char)i;
		traced_sample();
		sum += memory[0];
	}
	return sum;
}

/* Arguments on the stack and a variable size: gcc reaches the CFA by a pointer that
 * it saved in the frame. */
int realigned(int a, int b, int c, int d, int e, int f, int g, int h); /* not specialized */
NOINLINE int realigned(int a, int b, int c, int d, int e, int f, int g, int h)
{
	__attribute__((aligned(64))) volatile int local[16];
	char *memory = alloca((size_t)a);
	memory[0] = 1;
	local[b] = h;
	traced_sample();
	int result = c ? realigned(a, b, c - 1, d, e, f, g, h) : 0;
	traced_sample();
	ck_assert_uint_eq((uintptr_t)local % 64, 0);
	return result + local[b] + g + memory[0] - d - e - f;
}

static NOINLINE int tail_of_compiler(int n)
{
	traced_sample();
	return n ? tail_of_compiler(n - 1) : tail_first();
}

static NOINLINE int each(int (*function)(void))
{
	traced_sample();
	int result = function();
	traced_sample();
	KEEP(result);
	return result;
}

START_TEST(odd_frames)
{
	traced_open(distances[_i], INCSTACK_MODE_PATCH);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(each(tail_first), 21);
		ck_assert_int_eq(each(odd_place), 22);
		ck_assert_int_eq(each(pushes), 23);
		ck_assert_int_eq(with_alloca(6), 21);
		ck_assert_int_eq(realigned(16, 3, 4, 1, 1, 1, 3, 9), 5 * 10);
		ck_assert_int_eq(tail_of_compiler(5), 21);
		ck_assert_int_eq(traced_check(), 0);
	}
	struct incstack_stats stats = traced_stats();
	ck_assert_uint_eq(stats.stale, 0);
	ck_assert(_i > 1 || stats.returns > 20);
	traced_close();
}
END_TEST

/* ---- deep -------------------------------------------------------------------------------- */

#ifdef __SANITIZE_THREAD__
enum { DEEP = 30000 }; /* the sanitizer keeps 65536 frames of its own */
#else
enum { DEEP = 100000 };
#endif
static unsigned distance;

static NOINLINE int deep(int depth)
{
	int result = 0;
	if (depth) {
		result = deep(depth - 1);
		KEEP(result);
	} else {
		traced_sample();
		traced_sample();
	}
	if (depth == DEEP / 2)
		traced_sample();
	return result + 1;
}

static void *deep_thread(void *result)
{
	traced_open(distance, INCSTACK_MODE_PATCH);
	ck_assert_int_eq(incstack_stack_reserve(traced_stack, 16 << 20), 0);
	*(int *)result = deep(DEEP);
	ck_assert_uint_eq(traced_stats().stale, 0);
	ck_assert_int_eq(traced_check(), 0);
	ck_assert(distance != 1 || traced_stats().returns > DEEP);
	traced_close();
	return NULL;
}

START_TEST(hundred_thousand_frames)
{
	pthread_t thread;
	pthread_attr_t attributes;
	int result = 0;
	distance = _i ? 0 : 1;
	pthread_attr_init(&attributes);
	ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 256 << 20), 0);
	ck_assert_int_eq(pthread_create(&thread, &attributes, deep_thread, &result), 0);
	pthread_attr_destroy(&attributes);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(result, DEEP + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("odd frames");
	TCase *tc = tcase_create("with barriers");
	tcase_add_loop_test(tc, odd_frames, 0, DISTANCES);
	tcase_add_loop_test(tc, hundred_thousand_frames, 0, 2);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
