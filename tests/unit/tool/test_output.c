/* SPDX-License-Identifier: MIT
 *
 * Tests where outputs of the tool go: through links of the user, to pipes, and never to another file if
 * somebody exchanges the output while the tool looks at it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_suite.h"
#include "tool/output.h"

static char folder[] = "/tmp/incstack-output-XXXXXX";
static bool exchange; /* in the middle of the next output */

int __real_faccessat(int at, const char *path, int mode, int flags);
int __wrap_faccessat(int at, const char *path, int mode, int flags);

int __wrap_faccessat(int at, const char *path, int mode, int flags)
{
	const int result = __real_faccessat(at, path, mode, flags);
	if (exchange)
		ck_assert_int_eq(rename("trap", "out"), 0);
	exchange = false;
	return result;
}

static void begin(void)
{
	exchange = false;
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
}

static void end(void)
{
	char command[64];
	ck_assert_int_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
	memcpy(strrchr(folder, '-') + 1, "XXXXXX", 6);
}

static void make(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

static void expect(const char *name, const char *text)
{
	char found[64] = "";
	FILE *file = fopen(name, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fread(found, 1, sizeof(found) - 1, file), strlen(text));
	ck_assert_str_eq(found, text);
	fclose(file);
}

static void put(const char *path, bool failed)
{
	const int fd = tool_output_create(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "new", 3), 3);
	close(fd);
	ck_assert_int_eq(tool_output_finish(failed), 0);
}

static ino_t inode(const char *name)
{
	struct stat status;
	ck_assert_int_eq(lstat(name, &status), 0);
	return status.st_ino;
}

START_TEST(a_file_is_made_and_replaced)
{
	struct stat status;
	begin();
	put("out", false);
	expect("out", "new");
	make("out", "old and longer");
	ck_assert_int_eq(chmod("out", 0640), 0);
	put("out", true);
	expect("out", "old and longer");
	put("out", false);
	expect("out", "new");
	ck_assert_int_eq(stat("out", &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0640);
	put("other", true);
	ck_assert_int_ne(access("other", F_OK), 0);
	ck_assert_int_eq(system("test \"$(ls)\" = out"), 0); /* no temporary file */
	end();
}
END_TEST

START_TEST(links_of_the_user_are_followed)
{
	begin();
	ck_assert_int_eq(mkdir("far", 0755), 0);
	ck_assert_int_eq(symlink("far/middle", "out"), 0);
	ck_assert_int_eq(symlink("../last", "far/middle"), 0);
	put("out", false);
	expect("last", "new");
	make("last", "old");
	put("out", false);
	expect("last", "new");
	ck_assert_int_eq(readlink("out", (char[8]){0}, 8), 8);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	ck_assert_int_eq(tool_output_create("loop"), -1);
	ck_assert_int_eq(errno, ELOOP);
	end();
}
END_TEST

START_TEST(an_exchanged_file_leads_nowhere)
{
	ino_t before;
	begin();
	make("victim", "precious");
	make("out", "old");
	ck_assert_int_eq(symlink("victim", "trap"), 0);
	before = inode("victim");
	exchange = true;
	put("out", false);
	ck_assert(!exchange);
	expect("victim", "precious");
	ck_assert_uint_eq(inode("victim"), before);
	expect("out", "new");
	end();
}
END_TEST

START_TEST(open_files_are_written)
{
	char path[64];
	int ends[2];
	char text[8] = "";
	begin();
	ck_assert_int_eq(pipe(ends), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", ends[1]);
	put(path, false);
	ck_assert_int_eq(read(ends[0], text, sizeof(text)), 3);
	ck_assert_str_eq(text, "new");
	make("here", "old and longer");
	int fd = open("here", O_WRONLY);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const ino_t before = inode("here");
	put(path, false);
	expect("here", "new");
	ck_assert_uint_eq(inode("here"), before);
	close(fd);
	end();
}
END_TEST

START_TEST(what_cannot_be_a_file_is_refused)
{
	static const struct {
		const char *path;
		int error;
	} refused[] = {{".", EISDIR},         {"none/", ENOENT}, {"none/out", ENOENT},
		       {"file/out", ENOTDIR}, {"", EISDIR},      {"/", EISDIR}};
	begin();
	make("file", "old");
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		ck_assert_int_eq(tool_output_create(refused[i].path), -1);
		ck_assert_msg(errno == refused[i].error, "'%s': %s", refused[i].path,
			      strerror(errno));
	}
	expect("file", "old");
	end();
}
END_TEST

START_TEST(an_unfinished_output_is_removed)
{
	begin();
	close(tool_output_create("one"));
	put("two", false);
	ck_assert_int_eq(system("test \"$(ls)\" = two"), 0);
	close(tool_output_create("three"));
	tool_output_abandon();
	ck_assert_int_eq(system("test \"$(ls)\" = two"), 0);
	tool_output_finish(true);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("outputs");
	TCase *tests = tcase_create("outputs");
	tcase_add_test(tests, a_file_is_made_and_replaced);
	tcase_add_test(tests, links_of_the_user_are_followed);
	tcase_add_test(tests, an_exchanged_file_leads_nowhere);
	tcase_add_test(tests, open_files_are_written);
	tcase_add_test(tests, what_cannot_be_a_file_is_refused);
	tcase_add_test(tests, an_unfinished_output_is_removed);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
