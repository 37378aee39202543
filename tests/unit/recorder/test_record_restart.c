/* SPDX-License-Identifier: MIT
 *
 * Tests which system calls of a held thread are made again: only the call that was read before the
 * signal, only if it has failed, and none that must not be made twice.
 */
#include <check.h>
#include <string.h>

#include "recorder/system/restart.c"

#include "run_suite.h"

static const char *text;
static int has_failed;
static struct incstack__blocked_call call;
static ucontext_t context;

size_t incstack__record_read_small(const char *path, char *to, size_t size)
{
	ck_assert_str_eq(path, "/proc/self/task/77/syscall");
	strncpy(to, text, size - 1);
	to[size - 1] = '\0';
	return strlen(to);
}

bool incstack__restart_failed_call(const ucontext_t *of)
{
	ck_assert_ptr_eq(of, &context);
	return has_failed;
}

/* The thread is in the call that `blocked` describes; the signal finds it with these registers. */
static void begin(const char *blocked)
{
	static const int places[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
	greg_t *registers = context.uc_mcontext.gregs;

	memset(&call, 0, sizeof(call));
	call.number = -1;
	text = blocked;
	incstack__restart_prepare(77, &call);
	for (int i = 0; i < 6; i++)
		registers[places[i]] = i + 1;
	registers[REG_RSP] = 0x7ffe00000000;
	registers[REG_RIP] = 0x401234;
	registers[REG_RAX] = -4;
	has_failed = 1;
}

/* Whether the thread makes the call again. It does nothing else. */
static int is_made_again(int number)
{
	const greg_t *registers = context.uc_mcontext.gregs;

	incstack__restart(&call, &context);
	if (registers[REG_RIP] == 0x401232 && registers[REG_RAX] == number)
		return 1;
	ck_assert_int_eq(registers[REG_RIP], 0x401234);
	ck_assert_int_eq(registers[REG_RAX], -4);
	return 0;
}

#define REST " 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffe00000000 0x401234\n"

START_TEST(the_call_that_was_interrupted)
{
	begin("7" REST);
	ck_assert(is_made_again(SYS_poll));
	begin("0" REST);
	ck_assert(is_made_again(SYS_read));
}
END_TEST

START_TEST(not_a_call_that_did_not_fail)
{
	begin("7" REST);
	has_failed = 0;
	ck_assert(!is_made_again(SYS_poll));
}
END_TEST

START_TEST(not_another_call)
{
	static const int registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10,
					REG_R8,  REG_R9,  REG_RSP, REG_RIP};
	greg_t *changed = &context.uc_mcontext.gregs[registers[_i]];

	begin("7" REST);
	(*changed)++;
	incstack__restart(&call, &context);
	ck_assert_int_eq(context.uc_mcontext.gregs[REG_RAX], -4);
}
END_TEST

START_TEST(not_a_call_that_must_not_be_made_twice)
{
	begin("3" REST);
	ck_assert(!is_made_again(SYS_close));
	begin("42" REST);
	ck_assert(!is_made_again(SYS_connect));
	begin("219" REST);
	ck_assert(!is_made_again(SYS_restart_syscall));
}
END_TEST

START_TEST(not_in_a_call_that_was_read)
{
	static const char *const other[] = {"", "running\n", "-1 0x7ffe00000000 0x401234\n",
					    "7 0x1 0x2\n"};

	begin(other[_i]);
	ck_assert(!is_made_again(SYS_poll));
	/* What was read before stays. */
	begin("7" REST);
	text = other[_i];
	incstack__restart_prepare(77, &call);
	ck_assert(is_made_again(SYS_poll));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("restart");
	TCase *tests = tcase_create("restart");

	tcase_add_test(tests, the_call_that_was_interrupted);
	tcase_add_test(tests, not_a_call_that_did_not_fail);
	tcase_add_loop_test(tests, not_another_call, 0, 8);
	tcase_add_test(tests, not_a_call_that_must_not_be_made_twice);
	tcase_add_loop_test(tests, not_in_a_call_that_was_read, 0, 4);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
