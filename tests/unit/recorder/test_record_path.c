/* SPDX-License-Identifier: MIT
 *
 * Tests finding the path of a mapped file in the kernel's list of mappings: any list, read in
 * pieces of any size, is read to its end or not at all.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *maps;     /* null: cannot be opened */
static size_t piece, offset; /* bytes that a read gives at most; where the next one begins */
static int is_open;

static int open_maps(const char *path, int flags, mode_t mode)
{
	ck_assert_uint_eq(mode, 0);
	ck_assert_str_eq(path, "/proc/self/maps");
	ck_assert_int_eq(flags, O_RDONLY | O_CLOEXEC);
	offset = 0;
	is_open = maps != NULL;
	return is_open ? 77 : -1;
}

static ssize_t read_maps(int fd, void *into, size_t bytes)
{
	size_t left = strlen(maps) - offset;

	ck_assert_int_eq(fd, 77);
	if (left > bytes)
		left = bytes;
	if (left > piece)
		left = piece;
	memcpy(into, maps + offset, left);
	offset += left;
	return left == 0 && piece == 1 ? -1 : (ssize_t)left;
}

static int close_maps(int fd)
{
	ck_assert_int_eq(fd, 77);
	is_open = 0;
	return 0;
}

#include "recorder/system/kernel.h"

#define incstack__kernel_open open_maps
#define incstack__kernel_read read_maps
#define incstack__kernel_close close_maps
#include "recorder/system/path.c"
#undef incstack__kernel_close
#undef incstack__kernel_read
#undef incstack__kernel_open

#include "run_suite.h"

static const char usual[] =
	"55d0c0a0f000-55d0c0a10000 r--p 00000000 fe:00 131 /usr/bin/a b\n"
	"7f0000001000-7f0000002000 rw-p 00000000 00:00 0 \n"
	"7F0000003000-7f0000004000 rw-p 00000000 00:00 0 /capital\n"
	"7f0000005000-7f0000006000 rw-p 00000000 00:00 0 /usr/lib/gone.so (deleted)\n"
	"7f0000007000-7f0000008000 rw-p 00000000 00:00 0  (deleted)\n"
	"7f0000009000-7f000000a000 rw-p 00000000 00:00 0 / (deleted)\n"
	"7f000000b000-7f000000c000 rw-p 00000000 00:00 0 /deleted)\n"
	"7f000000cdef-7f000000d000 rw-p 00000000 00:00 0 /odd\n"
	"7ffc00000000-7ffc00001000 rw-p 00000000 00:00 0 [stack]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 /cut";

static const struct {
	uint64_t address;
	const char *path; /* null: there is none */
} answers[] = {
	{0, NULL},
	{0x55d0c0a0efff, NULL},
	{0x55d0c0a0f000, "/usr/bin/a b"},
	{0x55d0c0a0ffff, "/usr/bin/a b"},
	{0x55d0c0a10000, NULL},
	{0x7f0000001000, NULL},
	{0x7f0000005000, "/usr/lib/gone.so"},
	{0x7f0000007000, NULL},
	{0x7f0000009000, "/"},
	{0x7f000000b000, "/deleted)"},
	{0x7f000000cdee, NULL},
	{0x7f000000cdef, "/odd"},
	{0x7ffc00000000, NULL},
	{0xffffffffff600000, "/cut"},
	{UINT64_MAX, NULL},
};

static void check(uint64_t address, const char *wanted, size_t size)
{
	char path[64 + 1];

	path[size] = 'x';
	ck_assert_int_eq(incstack__record_path(address, path, size), wanted != NULL);
	ck_assert_int_eq(path[size], 'x');
	ck_assert_str_eq(path, wanted != NULL ? wanted : "");
	ck_assert_int_eq(is_open, 0);
}

START_TEST(each_address)
{
	static const size_t pieces[] = {1, 2, 7, 511, 512, 4096};

	maps = usual;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		piece = pieces[i];
		for (size_t n = 0; n < sizeof(answers) / sizeof(answers[0]); n++)
			check(answers[n].address, answers[n].path, 64);
	}
}
END_TEST

/* A path that does not fit counts as none; one that fits to the byte is returned. */
START_TEST(long_paths)
{
	maps = usual;
	piece = 4096;
	check(0x55d0c0a0f000, "/usr/bin/a b", sizeof("/usr/bin/a b"));
	check(0x55d0c0a0f000, NULL, sizeof("/usr/bin/a b") - 1);
	check(0x55d0c0a0f000, NULL, 1);
}
END_TEST

/* A list that ends anywhere, or that is not there. */
START_TEST(lists_that_end)
{
	static char cut[sizeof(usual)];
	char path[64];

	maps = cut;
	for (size_t length = 0; length < sizeof(usual); length++) {
		memcpy(cut, usual, length);
		cut[length] = '\0';
		piece = 3;
		incstack__record_path(UINT64_MAX, path, sizeof(path));
		ck_assert_str_eq(path, "");
		incstack__record_path(0x55d0c0a0f000, path, sizeof(path));
		ck_assert_int_eq(strncmp(path, "/usr/bin/a b", strlen(path)), 0);
		ck_assert_int_eq(is_open, 0);
	}
	maps = NULL;
	check(0x55d0c0a0f000, NULL, 64);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("paths of modules");
	TCase *tests = tcase_create("mappings");

	tcase_add_test(tests, each_address);
	tcase_add_test(tests, long_paths);
	tcase_add_test(tests, lists_that_end);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
