/* SPDX-License-Identifier: MIT
 *
 * Tests the interpreter of seccomp filters: each instruction, what the kernel would refuse, and
 * filters of arbitrary bytes, which must end and read nothing outside.
 */
#include <linux/audit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "recorder/system/seccomp_filter.c"
#include "run_suite.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NR BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define RETURN(k) BPF_STMT(BPF_RET | BPF_K, k)
#define RETURN_A BPF_STMT(BPF_RET | BPF_A, 0)
#define SET(k) BPF_STMT(BPF_LD | BPF_IMM, k)
#define SET_X(k) BPF_STMT(BPF_LDX | BPF_IMM, k)

static const struct seccomp_data write_call = {
	.nr = SYS_write, .arch = AUDIT_ARCH_X86_64, .args = {900, 0x1122334455667788, 3}};

static uint32_t result_of(const struct sock_filter *filter, size_t count)
{
	uint32_t result = 0xdead;

	ck_assert_int_eq(incstack__seccomp_run(filter, count, &write_call, &result), 0);
	return result;
}

START_TEST(an_allow_list)
{
	const struct sock_filter filter[] = {
		NR,
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};
	struct seccomp_data other = write_call;
	uint32_t result;

	ck_assert_uint_eq(result_of(filter, COUNT(filter)), SECCOMP_RET_ALLOW);
	other.nr = SYS_openat;
	ck_assert_int_eq(incstack__seccomp_run(filter, COUNT(filter), &other, &result), 0);
	ck_assert_uint_eq(result, SECCOMP_RET_KILL_PROCESS);
}
END_TEST

START_TEST(instructions)
{
	static const struct {
		struct sock_filter i[3];
		uint32_t result;
	} cases[] = {
		{{SET(7), BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 5), RETURN_A}, 12},
		{{SET(7), BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 9), RETURN_A}, UINT32_MAX - 1},
		{{SET(7), BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 3), RETURN_A}, 21},
		{{SET(7), BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 2), RETURN_A}, 3},
		{{SET(7), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 5), RETURN_A}, 5},
		{{SET(7), BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 8), RETURN_A}, 15},
		{{SET(7), BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 2), RETURN_A}, 5},
		{{SET(7), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 31), RETURN_A}, 0x80000000},
		{{SET(7), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1), RETURN_A}, 3},
		{{SET(7), BPF_STMT(BPF_ALU | BPF_NEG, 0), RETURN_A}, UINT32_MAX - 6},
		{{SET_X(7), BPF_STMT(BPF_MISC | BPF_TXA, 0), RETURN_A}, 7},
		{{SET_X(7), BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0), RETURN_A}, 7},
		{{SET_X(0), BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), RETURN(9)}, 0},
		{{BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), RETURN_A, RETURN_A}, 64},
		{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4), RETURN_A, RETURN_A}, AUDIT_ARCH_X86_64},
		{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 24), RETURN_A, RETURN_A}, 0x55667788},
		{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 60), RETURN_A, RETURN_A}, 0},
		{{SET(7), BPF_STMT(BPF_ST, 15), RETURN_A}, 7},
		{{BPF_STMT(BPF_LD | BPF_MEM, 3), RETURN_A, RETURN_A}, 0},
		{{BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), RETURN(1), RETURN(2)}, 2},
		{{BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 0, 1, 0), RETURN(1), RETURN(2)}, 1},
		{{BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0), RETURN(1), RETURN(2)}, 2},
		{{BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 1, 0), RETURN(1), RETURN(2)}, 1},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		ck_assert_msg(result_of(cases[i].i, 3) == cases[i].result, "case %zu: %x", i,
			      result_of(cases[i].i, 3));
}
END_TEST

/* The kernel refuses to load these. */
START_TEST(no_filters)
{
	static const struct sock_filter cases[][2] = {
		{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), RETURN(1)},
		{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), RETURN(1)},
		{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, UINT32_MAX), RETURN(1)},
		{BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0), RETURN(1)},
		{BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), RETURN(1)},
		{BPF_STMT(BPF_LD | BPF_MEM, 16), RETURN(1)},
		{BPF_STMT(BPF_STX, UINT32_MAX), RETURN(1)},
		{BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), RETURN(1)},
		{BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), RETURN(1)},
		{BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), RETURN(1)},
		{BPF_JUMP(BPF_JMP | BPF_JA, UINT32_MAX, 0, 0), RETURN(1)},
		{BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 255, 255), RETURN(1)},
		{SET(1), SET(2)},
	};
	uint32_t result;

	for (size_t i = 0; i < COUNT(cases); i++)
		ck_assert_msg(incstack__seccomp_run(cases[i], 2, &write_call, &result) < 0,
			      "case %zu", i);
	ck_assert_int_lt(incstack__seccomp_run(NULL, 1, &write_call, &result), 0);
	ck_assert_int_lt(incstack__seccomp_run(cases[0], 0, &write_call, &result), 0);
	ck_assert_int_lt(incstack__seccomp_run(cases[0], BPF_MAXINSNS + 1, &write_call, &result),
			 0);
}
END_TEST

START_TEST(arbitrary_bytes)
{
	uint64_t x = 88172645463325252;
	uint32_t result;

	for (int round = 0; round < 20000; round++) {
		const size_t count = 1 + (size_t)round % 40;
		/* A copy of the exact size, for valgrind and the sanitizers. */
		struct sock_filter *filter = malloc(count * sizeof(*filter));

		ck_assert_ptr_nonnull(filter);
		for (size_t i = 0; i < count; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			filter[i] = (struct sock_filter){
				(uint16_t)(x & 0xff), (uint8_t)(x >> 8 & 7), (uint8_t)(x >> 16 & 7),
				(uint32_t)(x >> 32 & (x & 1 ? 63 : ~0u))};
		}
		incstack__seccomp_run(filter, count, &write_call, &result);
		free(filter);
	}
}
END_TEST

START_TEST(what_is_survived)
{
	ck_assert_int_eq(incstack__seccomp_survives(SECCOMP_RET_ALLOW), 1);
	ck_assert_int_eq(incstack__seccomp_survives(SECCOMP_RET_LOG), 1);
	ck_assert_int_eq(incstack__seccomp_survives(SECCOMP_RET_ERRNO | 1), 1);
	ck_assert_int_eq(incstack__seccomp_survives(SECCOMP_RET_TRAP), 0);
	ck_assert_int_eq(incstack__seccomp_survives(SECCOMP_RET_TRACE), 0);
	ck_assert_int_eq(incstack__seccomp_survives(SECCOMP_RET_USER_NOTIF), 0);
	ck_assert_int_eq(incstack__seccomp_survives(SECCOMP_RET_KILL_THREAD), 0);
	ck_assert_int_eq(incstack__seccomp_survives(SECCOMP_RET_KILL_PROCESS), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("seccomp_filter");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, an_allow_list);
	tcase_add_test(tests, instructions);
	tcase_add_test(tests, no_filters);
	tcase_add_test(tests, arbitrary_bytes);
	tcase_add_test(tests, what_is_survived);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
