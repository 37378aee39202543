/* SPDX-License-Identifier: MIT
 *
 * Tests that an intercepted return preserves values: of every class of return value, and in
 * caller-saved registers, which -fipa-ra lets a caller use at -O2. Rules are unknown at first,
 * so the slow path of the trampoline, through libunwind, is tested, too.
 */
#include <complex.h>
#include <immintrin.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <incstack/signal.h>

#include "../unit/run_suite.h"
#include "traced.h"

#define NOINLINE __attribute__((noinline))

struct longs {
	long a, b;
};
struct doubles {
	double a, b;
};
struct long_double_pair {
	long double a, b;
};
struct int_sse {
	long a;
	double b;
};
struct sse_int {
	float a, b;
	int c;
};
struct three_floats {
	float a[3];
};
struct bytes {
	char a[11];
};
struct memory {
	long a[9];
};
struct empty {
	char nothing[0];
};

/* A function whose own return is intercepted, and a test that its value arrives. */
#define RETURNS(name, type, value) \
	static NOINLINE type make_##name(void) \
	{ \
		type result = value; \
		traced_sample(); \
		__asm__ volatile("" : "+m"(result)); \
		return result; \
	} \
	static NOINLINE int name##_arrives(void) \
	{ \
		type want = value; \
		type got = make_##name(); \
		return memcmp(&want, &got, sizeof(want)) == 0; \
	}

RETURNS(char, signed char, -7)
RETURNS(short, short, -1234)
RETURNS(int, int, -123456)
RETURNS(long, long, 0x123456789abcdef)
RETURNS(pointer, char *, (char *)0x7fff12345678)
RETURNS(float, float, 1.5f)
RETURNS(double, double, 2.25)
RETURNS(float_complex, float complex, 1.0f + 2.0f * I)
RETURNS(double_complex, double complex, 3.0 + 4.0 * I)
RETURNS(longs, struct longs, ((struct longs){1, -2}))
RETURNS(doubles, struct doubles, ((struct doubles){0.5, -0.25}))
RETURNS(int_sse, struct int_sse, ((struct int_sse){-3, 7.5}))
RETURNS(sse_int, struct sse_int, ((struct sse_int){1.5f, 2.5f, 3}))
RETURNS(three_floats, struct three_floats, ((struct three_floats){{1, 2, 3}}))
RETURNS(bytes, struct bytes, ((struct bytes){.a = "0123456789"}))
RETURNS(memory, struct memory, ((struct memory){{1, 2, 3, 4, 5, 6, 7, 8, 9}}))

/* These have padding, or halves that memcmp of a volatile copy does not like. */
static NOINLINE __int128 make_int128(void)
{
	volatile long high = -5;
	traced_sample();
	return (__int128)((unsigned __int128)high << 64 | 9);
}

static NOINLINE long double make_long_double(void)
{
	volatile long double result = 3.125L;
	traced_sample();
	return result;
}

static NOINLINE long double complex make_long_double_complex(void)
{
	volatile long double part = 5;
	traced_sample();
	return part + 6.0L * I;
}

static NOINLINE struct long_double_pair make_long_double_pair(void)
{
	volatile long double part = 7;
	traced_sample();
	return (struct long_double_pair){part, part + 1};
}

static NOINLINE struct empty make_empty(void)
{
	traced_sample();
	return (struct empty){};
}

__attribute__((target("avx"))) static NOINLINE __m256 make_m256(const float *from)
{
	traced_sample();
	return _mm256_loadu_ps(from);
}

__attribute__((target("avx"))) static NOINLINE int m256_arrives(void)
{
	float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
	_mm256_storeu_ps(out, make_m256(in));
	return memcmp(in, out, sizeof(in)) == 0;
}

__attribute__((target("avx512f"))) static NOINLINE __m512 make_m512(const float *from)
{
	traced_sample();
	return _mm512_loadu_ps(from);
}

__attribute__((target("avx512f"))) static NOINLINE int m512_arrives(void)
{
	float in[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, out[16];
	_mm512_storeu_ps(out, make_m512(in));
	return memcmp(in, out, sizeof(in)) == 0;
}

START_TEST(every_class)
{
	traced_open((unsigned)_i + 1, INCSTACK_MODE_PATCH);
	for (int i = 0; i < 3; i++) {
		ck_assert(char_arrives() && short_arrives() && int_arrives() && long_arrives());
		ck_assert(pointer_arrives() && float_arrives() && double_arrives());
		ck_assert(float_complex_arrives() && double_complex_arrives());
		ck_assert(longs_arrives() && doubles_arrives() && int_sse_arrives());
		ck_assert(sse_int_arrives() && three_floats_arrives() && bytes_arrives());
		ck_assert(memory_arrives());
		ck_assert(make_int128() == ((__int128)((unsigned __int128)-5 << 64 | 9)));
		ck_assert(make_long_double() == 3.125L);
		ck_assert(make_long_double_complex() == 5.0L + 6.0L * I);
		ck_assert(make_long_double_pair().b == 8);
		make_empty();
		ck_assert(!__builtin_cpu_supports("avx") || m256_arrives());
		ck_assert(!__builtin_cpu_supports("avx512f") || m512_arrives());
	}
	ck_assert(_i > 0 || traced_stats().returns >= 3 * 23);
	ck_assert_int_eq(traced_check(), 0);
	traced_close();
}
END_TEST

/* ---- caller-saved registers ----------------------------------------------------------- */

/* Loads all vector registers, calls, and stores them. `callee` keeps them all, but its
 * return is intercepted. */
void vectors_over_call(const double *in, double *out, void (*callee)(void));
void keep_vectors_and_sample(void);
void sample_for_asm(void);

void sample_for_asm(void)
{
	traced_sample();
}

#define EACH(op) \
	op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) \
		op(14) op(15)
#define LOAD(n) "movups 16*" #n "(%rdi), %xmm" #n "\n\t"
#define STORE(n) "movups %xmm" #n ", 16*" #n "(%rbx)\n\t"
#define KEEP(n) "movups %xmm" #n ", 16*" #n "(%rsp)\n\t"
#define GIVE(n) "movups 16*" #n "(%rsp), %xmm" #n "\n\t"

__asm__(".text\n.globl vectors_over_call\nvectors_over_call:\n\t.cfi_startproc\n\t"
	"pushq %rbx\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_offset rbx, -16\n\tmovq %rsi, "
	"%rbx\n\t" EACH(LOAD) "call *%rdx\n\t" EACH(
		STORE) "popq %rbx\n\t.cfi_adjust_cfa_offset -8\n\t.cfi_restore "
		       "rbx\n\tret\n\t.cfi_endproc\n\t"
		       ".globl "
		       "keep_vectors_and_sample\nkeep_vectors_and_sample:\n\t.cfi_startproc\n\t"
		       "subq $264, %rsp\n\t.cfi_adjust_cfa_offset 264\n\t" EACH(
			       KEEP) "call sample_for_asm\n\t" EACH(GIVE) "addq $264, "
									  "%rsp\n\t.cfi_adjust_cfa_"
									  "offset "
									  "-264\n\tret\n\t.cfi_"
									  "endproc\n");

START_TEST(vector_registers)
{
	double in[32], out[32];
	for (int i = 0; i < 32; i++)
		in[i] = i + 0.5;
	traced_open(1, INCSTACK_MODE_PATCH);
	for (int i = 0; i < 3; i++) {
		memset(out, 0, sizeof(out));
		vectors_over_call(in, out, keep_vectors_and_sample);
		ck_assert_mem_eq(in, out, sizeof(in));
	}
	ck_assert_uint_ge(traced_stats().returns, 3);
	ck_assert_int_eq(traced_check(), 0);
	traced_close();
}
END_TEST

static int refused;
static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	refused += incstack_stack_sample_signal(traced_stack, 0, 1, context) != 0;
}

/* A signal without a call: gcc sees all that these functions clobber, and -fipa-ra
 * keeps values in the other caller-saved registers over calls of them. The handler's
 * sample patches the return of `inner`. */
static long process, thread;
static NOINLINE void signal_here(void)
{
	long result = SYS_tgkill;
	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(process), "S"(thread), "d"((long)SIGUSR1)
			 : "rcx", "r11", "memory");
}

static NOINLINE long inner(long x)
{
	signal_here();
	__asm__ volatile("" : "+r"(x));
	return x * 3;
}

static NOINLINE double outer(const double *v, const long *n)
{
	double a = v[0] * 2, b = v[1] * 3, c = v[2] * 5, d = v[3] * 7, e = v[4] * 11;
	long p = n[0] + 1, q = n[1] + 2, r = n[2] + 3;
	long result = inner(p);
	return a - b * c + d * e + (double)(p * q - r + result);
}

START_TEST(ipa_ra)
{
	const double doubles[5] = {1.5, 2.5, 3.5, 4.5, 5.5}, *v = doubles;
	const long longs[3] = {10, 20, 30}, *n = longs;
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	process = getpid();
	thread = syscall(SYS_gettid);
	traced_open(1, INCSTACK_MODE_PATCH);
	__asm__ volatile("" : "+r"(v), "+r"(n)); /* no constants */
	for (int i = 0; i < 64; i++) {
		ck_assert_double_eq(outer(v, n), 3 - 7.5 * 17.5 + 31.5 * 60.5 + 11 * 22 - 33 + 33);
		ck_assert_int_eq(incstack_stack_reserve(traced_stack, 1 << 16), 0);
	}
	ck_assert_int_lt(refused, 4);
	ck_assert_uint_gt(traced_stats().returns, 32);
	traced_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("returns");
	TCase *tc = tcase_create("values");
	tcase_add_loop_test(tc, every_class, 0, 3);
	tcase_add_test(tc, vector_registers);
	tcase_add_test(tc, ipa_ra);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
