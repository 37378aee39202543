/* SPDX-License-Identifier: MIT
 *
 * Tests real returns through real thunks: every class of return value, the caller-saved
 * registers that -fipa-ra leaves live, unwinders that walk through patched frames, and traces
 * that are the same at every barrier distance.
 */
#include "real_stack.h"
#include "run_suite.h"

#include <complex.h>
#include <execinfo.h>
#include <immintrin.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

struct big {
	long a[8];
};
struct mixed {
	double d;
	long l;
};

/* Each function is sampled, so that its own return is intercepted. */
#define RETURNS(name, type, value) \
	static NOINLINE type name(void) \
	{ \
		type result = value; \
		take_sample(); \
		__asm__ volatile("" ::"m"(result) : "memory"); \
		return result; \
	}

RETURNS(r_int, int, 42)
RETURNS(r_int128, __int128, ((__int128)7 << 64 | 9))
RETURNS(r_float, float, 1.5f)
RETURNS(r_double, double, 2.25)
RETURNS(r_long_double, long double, 3.125L)
RETURNS(r_complex, double complex, 1.0 + 2.0 * I)
RETURNS(r_long_complex, long double complex, 3.0L + 4.0L * I)
RETURNS(r_big, struct big, ((struct big){{1, 2, 3, 4, 5, 6, 7, 8}}))
RETURNS(r_mixed, struct mixed, ((struct mixed){0.5, 11}))

__attribute__((target("avx"))) static NOINLINE __m256 r_m256(void)
{
	__m256 result = _mm256_set_ps(1, 2, 3, 4, 5, 6, 7, 8);
	take_sample();
	return result;
}

__attribute__((target("avx"))) static NOINLINE int m256_survives(void)
{
	float out[8];
	_mm256_storeu_ps(out, r_m256());
	return out[0] == 8 && out[7] == 1;
}

static void setup(void)
{
	open_runtime(1);
	s = open_stack();
}

START_TEST(return_values)
{
	uint64_t before = stats_of_stack().returns;
	ck_assert_int_eq(r_int(), 42);
	ck_assert(r_int128() == ((__int128)7 << 64 | 9));
	ck_assert(r_float() == 1.5f);
	ck_assert(r_double() == 2.25);
	ck_assert(r_long_double() == 3.125L);
	ck_assert(r_complex() == 1.0 + 2.0 * I);
	ck_assert(r_long_complex() == 3.0L + 4.0L * I);
	ck_assert_int_eq(r_big().a[7], 8);
	ck_assert_int_eq(r_mixed().l, 11);
	ck_assert(!__builtin_cpu_supports("avx") || m256_survives());
	ck_assert_uint_ge(stats_of_stack().returns - before, 9);
	close_all();
}
END_TEST

/* Forces what gcc does at -O2 with -fipa-ra: values stay in caller-saved registers across a call
 * whose callee is known not to touch them. */
static NOINLINE uint64_t registers_survive(void (*callee)(void))
{
	uint64_t sum;
	__asm__ volatile("movl $1, %%ecx\n\tmovl $2, %%edx\n\tmovl $4, %%esi\n\tmovl $8, %%edi\n\t"
			 "movl $16, %%r8d\n\tmovl $32, %%r9d\n\tmovl $64, %%r10d\n\t"
			 "movl $128, %%r11d\n\tmovl $256, %%eax\n\t"
			 "call *%[f]\n\t"
			 "addq %%rcx, %%rax\n\taddq %%rdx, %%rax\n\taddq %%rsi, %%rax\n\t"
			 "addq %%rdi, %%rax\n\taddq %%r8, %%rax\n\taddq %%r9, %%rax\n\t"
			 "addq %%r10, %%rax\n\taddq %%r11, %%rax"
			 : "=&a"(sum)
			 : [f] "b"(callee)
			 : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
	return sum;
}

/* Saves all that it touches, as a callee that -fipa-ra analysed would. */
void sampled_callee(void);
__attribute__((used)) static void sample_from_asm(void)
{
	take_sample();
}
__asm__(".text\n.globl sampled_callee\nsampled_callee:\n\t.cfi_startproc\n\tpush %rbp\n\t"
	".cfi_def_cfa_offset 16\n\t.cfi_offset 6, -16\n\tmov %rsp, %rbp\n\t"
	".cfi_def_cfa_register 6\n\tpush %rax\n\tpush %rcx\n\tpush %rdx\n\tpush %rsi\n\t"
	"push %rdi\n\tpush %r8\n\tpush %r9\n\tpush %r10\n\tpush %r11\n\tand $-16, %rsp\n\t"
	"call sample_from_asm\n\tlea -72(%rbp), %rsp\n\tpop %r11\n\tpop %r10\n\tpop %r9\n\t"
	"pop %r8\n\tpop %rdi\n\tpop %rsi\n\tpop %rdx\n\tpop %rcx\n\tpop %rax\n\tpop %rbp\n\t"
	".cfi_def_cfa 7, 8\n\tret\n\t.cfi_endproc\n");

START_TEST(caller_saved_registers)
{
	uint64_t before = stats_of_stack().returns;
	ck_assert_uint_eq(registers_survive(sampled_callee), 511);
	ck_assert_uint_ge(stats_of_stack().returns - before, 2);
	close_all();
}
END_TEST

static void *lines[512];
static int line_count;

static NOINLINE int recurse(int depth, int rounds)
{
	if (depth == 0) {
		line_count = backtrace(lines, 512);
		take_sample();
		volatile int patched = backtrace(lines, 512); /* no tail call */
		return patched;
	}
	int n = 0;
	for (int i = 0; i < rounds; i++)
		n = recurse(depth - 1, 1);
	take_sample();
	return n;
}

/* libgcc's walk before and after patching: the same except for one line of a thunk. */
START_TEST(unwinders_pass)
{
	int patched = recurse(20, 1);
	ck_assert_int_gt(line_count, 20);
	ck_assert_int_eq(patched, line_count + 1);
	close_all();
}
END_TEST

static uint64_t hash_of_traces(unsigned distance, enum incstack_mode mode)
{
	open_runtime(distance);
	s = open_stack();
	ck_assert_int_eq(incstack_stack_set_mode(s, mode), 0);
	ck_assert_int_eq(incstack_stack_reserve(s, 1 << 20), 0);
	samples = 0;
	for (int depth = 1; depth < 30; depth += 3)
		for (int rounds = 1; rounds < 4; rounds++)
			recurse(depth, rounds);
	struct incstack_tree *tree;
	ck_assert_int_eq(incstack_stack_retrieve(s, &tree), 0);
	ck_assert_uint_eq(tree->truncated, 0);
	uint64_t hash = tree->count;
	for (const struct incstack_trace *t = tree->traces; t; t = t->next)
		for (const struct incstack_frame_object *o = t->top; o; o = o->parent)
			hash = (hash ^ o->function ^ o->address << 7) * 0x100000001b3u;
	incstack_tree_release(tree);
	close_all();
	return hash;
}

/* Full walks are the reference; every other way must give the same frames. */
START_TEST(same_traces_always)
{
	static const unsigned distances[] = {0, 1, 2, 3, 6, 64};
	uint64_t truth = 0;
	for (int pass = 0; pass < 9; pass++) {
		enum incstack_mode mode = pass == 0   ? INCSTACK_MODE_FULL
					  : pass == 1 ? INCSTACK_MODE_VALIDATE
						      : INCSTACK_MODE_PATCH;
		uint64_t hash = hash_of_traces(distances[pass % 6], mode);
		if (pass)
			ck_assert_uint_eq(hash, truth);
		truth = hash;
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trampoline");
	TCase *tc = tcase_create("real returns");
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, return_values);
	tcase_add_test(tc, caller_saved_registers);
	tcase_add_test(tc, unwinders_pass);
	suite_add_tcase(suite, tc);
	TCase *modes = tcase_create("modes and distances");
	tcase_add_test(modes, same_traces_always);
	suite_add_tcase(suite, modes);
	return run_suite(suite);
}
