/* SPDX-License-Identifier: MIT
 *
 * Tests the names of generated code that perf and gdb see. If gdb is installed, it runs this
 * program again and must name a generated function in its backtrace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <incstack/jit.h>
#include <incstack/profile.h>

#include "run_suite.h"

static char program[4096];

static void read_file(const char *path, char *text, size_t size)
{
	FILE *stream = fopen(path, "r");

	ck_assert_ptr_nonnull(stream);
	text[fread(text, 1, size - 1, stream)] = 0;
	fclose(stream);
}

START_TEST(perf_finds_its_map)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
	ck_assert_int_eq(incstack_perf_map_add(1, 0, "empty"), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_perf_map_add(1, 1, ""), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_perf_map_add(1, 1, NULL), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_perf_map_add(UINTPTR_MAX, 2, "f"), INCSTACK_EINVAL);
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_int_eq(incstack_perf_map_add(0x7f0000001000, 0x40, "A.f(int)"), 0);
	ck_assert_int_eq(incstack_perf_map_add(0x7f0000002000, 0x10, "two\nlines"), 0);
	read_file(path, text, sizeof(text));
	unlink(path);
	ck_assert_str_eq(text, "7f0000001000 40 A.f(int)\n7f0000002000 10 two lines\n");
	ck_assert_int_eq(incstack_perf_map_add(1, 1, "x"), INCSTACK_EIO); /* its file is gone */
}
END_TEST

/* A link is in place of the map, at first and later. Returns 0 if the library does not write through it. */
static int meet_links(const char *victim)
{
	char path[64], text[16];
	struct stat status;
	int wrong = 0;

	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
	wrong |= symlink(victim, path) != 0;
	wrong |= incstack_perf_map_add(1, 1, "x") != 0;
	wrong |= lstat(path, &status) != 0 || !S_ISREG(status.st_mode);
	read_file(path, text, sizeof(text));
	wrong |= strcmp(text, "1 1 x\n") != 0;
	unlink(path);
	wrong |= symlink(victim, path) != 0;
	wrong |= incstack_perf_map_add(1, 1, "x") != INCSTACK_EIO;
	unlink(path);
	return wrong;
}

/* The link leads to a file of ours. A child of fork has a file of its own. */
START_TEST(a_link_in_place_of_the_map_is_not_followed)
{
	char victim[] = "/tmp/incstack-victim-XXXXXX", path[64], text[16];
	int file = mkstemp(victim), status = 1;
	pid_t child;

	ck_assert_int_eq(write(file, "keep", 4), 4);
	close(file);
	child = fork();
	if (child == 0) {
		int wrong = incstack_perf_map_add(1, 1, "y") != 0; /* of this process */
		pid_t grandchild;

		grandchild = fork();
		if (grandchild == 0)
			_exit(meet_links(victim));
		wrong |= waitpid(grandchild, &status, 0) != grandchild || status != 0;
		snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
		read_file(path, text, sizeof(text));
		wrong |= strcmp(text, "1 1 y\n") != 0;
		unlink(path);
		_exit(wrong);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	read_file(victim, text, sizeof(text));
	ck_assert_str_eq(text, "keep");
	unlink(victim);
}
END_TEST

/* ---- gdb ------------------------------------------------------------------------- */

__attribute__((noinline)) void generated_code_calls_this(void);

__attribute__((noinline)) void generated_code_calls_this(void)
{
	__asm__ volatile("" ::: "memory");
}

/* push rbp; mov rbp, rsp; mov rax, callee; call rax; pop rbp; ret */
static void *generate(size_t *size)
{
	unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0,    0,    0,
				0,    0,    0,    0,    0,    0xff, 0xd0, 0x5d, 0xc3};
	void (*callee)(void) = generated_code_calls_this;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code + 6, &callee, sizeof(callee));
	memcpy(page, code, sizeof(code));
	*size = sizeof(code);
	return mprotect(page, 4096, PROT_READ | PROT_EXEC) ? NULL : page;
}

static int run_generated(void)
{
	struct incstack_jit_code *code, *other;
	void (*function)(void);
	size_t size;
	void *page = generate(&size);

	if (!page || incstack_jit_register((uintptr_t)page + 2048, 16, "another", &other) ||
	    incstack_jit_register((uintptr_t)page, size, "Shape.area(double)", &code))
		return 1;
	memcpy(&function, &page, sizeof(function));
	function();
	incstack_jit_unregister(other);
	incstack_jit_unregister(code);
	return 0;
}

START_TEST(gdb_names_generated_code)
{
	char command[8192], text[1 << 14];
	FILE *stream;

	ck_assert_int_eq(run_generated(), 0);
	if (system("command -v gdb >/dev/null 2>&1") != 0)
		return;
	snprintf(command, sizeof(command),
		 "gdb -nx -batch -ex 'set environment ASAN_OPTIONS detect_leaks=0' "
		 "-ex 'set debuginfod enabled off' -ex 'set disable-randomization "
		 "off' -ex 'break generated_code_calls_this' -ex run -ex bt -ex continue --args %s "
		 "--generated 2>&1",
		 program);
	stream = popen(command, "r");
	ck_assert_ptr_nonnull(stream);
	text[fread(text, 1, sizeof(text) - 1, stream)] = 0;
	pclose(stream);
	if (strstr(text, "ptrace: Operation not permitted"))
		return;
	ck_assert_msg(strstr(text, "in Shape.area(double) ()"), "%s", text);
	ck_assert_msg(strstr(text, "exited normally"), "%s", text);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
	struct incstack_jit_code *code = NULL;

	ck_assert_int_eq(incstack_jit_register(1, 0, "f", &code), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_jit_register(UINTPTR_MAX, 2, "f", &code), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_jit_register(1, 1, "", &code), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_jit_register(1, 1, "f", NULL), INCSTACK_EINVAL);
	incstack_jit_unregister(NULL);
}
END_TEST

int main(int argc, char **argv)
{
	TCase *tests = tcase_create("jit");
	Suite *suite = suite_create("profile");

	if (argc > 1 && strcmp(argv[1], "--generated") == 0)
		return run_generated();
	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return 1;
	tcase_add_test(tests, perf_finds_its_map);
	tcase_add_test(tests, a_link_in_place_of_the_map_is_not_followed);
	tcase_add_test(tests, gdb_names_generated_code);
	tcase_add_test(tests, bad_arguments_are_refused);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
