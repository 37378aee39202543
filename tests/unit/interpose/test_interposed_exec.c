/* SPDX-License-Identifier: MIT
 *
 * Tests the interposed functions that replace or end the process image. Each announces that
 * first and passes on its arguments, including lists of arguments. The rest of the stub is
 * missing here, and no program is executed.
 */
#include <check.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <string.h>

#include "interpose/process.c"

#include "run_suite.h"

enum { MOST = 40 };

static unsigned announced;   /* ends of the image */
static const char *executed; /* the path or file */
static char *const *passed_environment;
static char *passed[MOST + 1];
static unsigned passed_count;

static void on_exec(void)
{
	announced++;
}

static const struct incstack__recorder recorder = {.on_exec = on_exec, .on_exit = on_exec};
const struct incstack__recorder *_Atomic incstack__stub_recorder;

/* ---- in place of libc's functions and of the search for them ------------------------------ */

static int pass(const char *path, char *const argv[])
{
	executed = path;
	for (passed_count = 0; argv[passed_count] != NULL; passed_count++)
		passed[passed_count] = argv[passed_count];
	return -1;
}

static int pass_all(const char *path, char *const argv[], char *const envp[])
{
	passed_environment = envp;
	return pass(path, argv);
}

static int pass_fd(int fd, char *const argv[], char *const envp[])
{
	ck_assert_int_eq(fd, 7);
	return pass_all("fd", argv, envp);
}

static int pass_at(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
	ck_assert_int_eq(flags, 5);
	ck_assert_int_eq(fd, 7);
	return pass_all(path, argv, envp);
}

static const struct {
	const char *name;
	void *function;
} fakes[] = {
	{"execv", (void *)pass},       {"execvp", (void *)pass},     {"execve", (void *)pass_all},
	{"execvpe", (void *)pass_all}, {"fexecve", (void *)pass_fd}, {"execveat", (void *)pass_at},
};

void *incstack__stub_find(void *_Atomic *cache, const char *name)
{
	*cache = NULL;
	for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++)
		if (strcmp(fakes[i].name, name) == 0)
			*cache = fakes[i].function;
	if (*cache == NULL)
		*cache = dlsym(RTLD_NEXT, name);
	return *cache;
}

void *incstack__stub_next(void *_Atomic *cache, const char *name)
{
	return incstack__stub_find(cache, name);
}

/* ---- tests --------------------------------------------------------------------------------- */

static char *arguments[] = {(char *)"one", (char *)"two", (char *)"three", NULL};
static char *variables[] = {(char *)"A=1", NULL};

static void was_passed(const char *path, unsigned count)
{
	ck_assert_uint_eq(announced, 1);
	ck_assert_str_eq(executed, path);
	ck_assert_uint_eq(passed_count, count);
	for (unsigned i = 0; i < count; i++)
		ck_assert_str_eq(passed[i], arguments[i]);
	announced = 0;
}

START_TEST(vectors)
{
	incstack__stub_recorder = _i ? &recorder : NULL;
	announced = !_i; /* no test counts it */
	ck_assert_int_eq(execv("v", arguments), -1);
	was_passed("v", 3);
	announced = !_i;
	ck_assert_int_eq(execvp("vp", arguments), -1);
	was_passed("vp", 3);
	announced = !_i;
	ck_assert_int_eq(execve("ve", arguments, variables), -1);
	was_passed("ve", 3);
	announced = !_i;
	ck_assert_int_eq(execvpe("vpe", arguments, variables), -1);
	was_passed("vpe", 3);
	announced = !_i;
	ck_assert_int_eq(fexecve(7, arguments, variables), -1);
	was_passed("fd", 3);
	announced = !_i;
	ck_assert_int_eq(execveat(7, "at", arguments, variables, 5), -1);
	was_passed("at", 3);
	ck_assert_ptr_eq(passed_environment, variables);
}
END_TEST

START_TEST(lists)
{
	incstack__stub_recorder = &recorder;
	ck_assert_int_eq(execl("l", "one", "two", "three", (char *)NULL), -1);
	was_passed("l", 3);
	ck_assert_int_eq(execl("l", "one", (char *)NULL), -1);
	was_passed("l", 1);
	ck_assert_int_eq(execlp("lp", "one", "two", (char *)NULL), -1);
	was_passed("lp", 2);
	ck_assert_int_eq(execle("le", "one", "two", (char *)NULL, variables), -1);
	was_passed("le", 2);
	ck_assert_ptr_eq(passed_environment, variables);
}
END_TEST

static size_t count(const char *first, ...)
{
	va_list list;
	va_start(list, first);
	const size_t found = count_arguments(list);
	va_end(list);
	ck_assert_str_eq(first, "first");
	return found;
}

/* One word too few, and the terminating null is written over something else. */
START_TEST(room_for_lists)
{
	ck_assert_uint_eq(count("first", (char *)NULL), 2);
	ck_assert_uint_eq(count("first", "second", (char *)NULL), 3);
	ck_assert_uint_eq(count("first", "2", "3", "4", "5", "6", "7", (char *)NULL), 8);
}
END_TEST

static jmp_buf back;
static int ended_with;

static void end(int status)
{
	ended_with = status;
	longjmp(back, 1);
}

/* Announced before it happens. */
START_TEST(ends)
{
	void *const saved[] = {_exit_cache, _Exit_cache};

	_exit_cache = _Exit_cache = (void *)end;
	incstack__stub_recorder = _i ? &recorder : NULL;
	volatile unsigned seen = 0, told = 0;
	if (setjmp(back) == 0)
		_exit(3);
	seen += ended_with == 3;
	told += announced == (unsigned)_i;
	if (setjmp(back) == 0)
		_Exit(4);
	seen += ended_with == 4;
	told += announced == 2 * (unsigned)_i;
	_exit_cache = saved[0]; /* an assertion that fails ends the process */
	_Exit_cache = saved[1];
	incstack__stub_recorder = NULL;
	ck_assert_uint_eq(seen, 2);
	ck_assert_uint_eq(told, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("interposed exec");
	TCase *tests = tcase_create("arguments and announcements");

	tcase_add_loop_test(tests, vectors, 0, 2);
	tcase_add_test(tests, lists);
	tcase_add_test(tests, room_for_lists);
	tcase_add_loop_test(tests, ends, 0, 2);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
