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
	struct incstack_perf_map *map = NULL;
	char path[64], text[256];

	snprintf(path, sizeof(path), "/tmp/perf-%ld.map", (long)getpid());
	ck_assert_int_eq(incstack_perf_map_create(NULL, &map), 0);
	ck_assert_int_eq(incstack_perf_map_add(map, 0x7f0000001000, 0x40, "A.f(int)"), 0);
	ck_assert_int_eq(incstack_perf_map_add(map, 0x7f0000002000, 0x10, "two\nlines"), 0);
	ck_assert_int_eq(incstack_perf_map_add(map, 1, 0, "empty"), INCSTACK_EINVAL);
	ck_assert_int_eq(incstack_perf_map_add(map, 1, 1, ""), INCSTACK_EINVAL);
	incstack_perf_map_destroy(map);
	read_file(path, text, sizeof(text));
	unlink(path);
	ck_assert_str_eq(text, "7f0000001000 40 A.f(int)\n7f0000002000 10 two lines\n");
}
END_TEST

/* There is a link that leads to a file of ours. */
START_TEST(a_link_in_place_of_the_map_is_not_followed)
{
	char victim[] = "/tmp/incstack-victim-XXXXXX", path[64], text[16];
	int file = mkstemp(victim);
	struct incstack_perf_map *map = NULL;

	ck_assert_int_eq(write(file, "keep", 4), 4);
	close(file);
	snprintf(path, sizeof(path), "/tmp/incstack-map-%ld", (long)getpid());
	ck_assert_int_eq(symlink(victim, path), 0);
	ck_assert_int_eq(incstack_perf_map_create(path, &map), 0);
	ck_assert_int_eq(incstack_perf_map_add(map, 1, 1, "x"), 0);
	incstack_perf_map_destroy(map);
	read_file(victim, text, sizeof(text));
	ck_assert_str_eq(text, "keep");
	unlink(path);
	unlink(victim);
	ck_assert_int_eq(incstack_perf_map_create("/nowhere/map", &map), INCSTACK_EIO);
	ck_assert_int_eq(incstack_perf_map_create(NULL, NULL), INCSTACK_EINVAL);
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
