/* SPDX-License-Identifier: MIT
 *
 * Tests a trace file that becomes shorter while the tool reads it: the tool ends with a message. And one that is
 * packed, onto a full disk or not.
 */
#include "tool/foreign.c"
#include "tool/names.c"
#include "tool/progress.c"
#include "tool/report/trace_map.c"

#include <check.h>
#include <sys/wait.h>

#include "tracefile/write.h"
#include "run_suite.h"

enum { PAGES = 4, PAGE_BYTES = 4096 };

static char file[] = "/tmp/incstack-trace-XXXXXX";

/* ---- in place of the rest of the tool ----------------------------------------------------- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

const struct incstack__spool_header *
incstack__spool_header(const void *spool, size_t bytes, const struct incstack__tracefile_header *of)
{
	return NULL;
}

int incstack__spool_recover(unsigned char *spool, size_t bytes,
			    const struct incstack__tracefile_header *of, unsigned char **blocks,
			    size_t *block_bytes)
{
	return INCSTACK_EINVAL;
}

uint64_t incstack__tracefile_end(const unsigned char *data, uint64_t size)
{
	return size;
}

int tool_files_input(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC);
}

int tool_files_spool(const char *path)
{
	return -1;
}

void tool_files_spool_is_done(const char *path)
{
}

uint64_t tool_files_process_start(uint64_t pid)
{
	return 0;
}

/* Where packed files go, and what became of the last one. */
static const char *packed_path = "/dev/null";
static int replaced = -1;

int tool_files_replace(const char *path)
{
	return open(packed_path, O_WRONLY | O_CLOEXEC);
}

FILE *tool_output_open(const char *path)
{
	return NULL;
}

int tool_output_close(const char *path, FILE *stream, int error)
{
	return error;
}

int tool_files_replaced(const char *path, bool failed)
{
	replaced = !failed;
	return 0;
}

#pragma GCC diagnostic pop

/* ---- tests -------------------------------------------------------------------------------- */

static void make_file(void)
{
	const int fd = mkstemp(file);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, PAGES * PAGE_BYTES), 0);
	ck_assert_int_eq(close(fd), 0);
}

static void remove_file(void)
{
	unlink(file);
}

/* In a child, whose messages go to the pipe: maps the file, makes it shorter, and reads the byte. */
static void read_byte(size_t at, int messages)
{
	struct timespec written;
	void *data;
	size_t size;

	dup2(messages, STDERR_FILENO);
	if (tool_trace_map(file, &data, &size, &written) != 0 || size != PAGES * PAGE_BYTES ||
	    truncate(file, PAGE_BYTES) != 0)
		_exit(3);
	_exit(((volatile char *)data)[at] == 0 ? 0 : 4);
}

/* In a child: packs the file, which ends with whether it was replaced. */
static void pack_file(size_t is_full, int messages)
{
	struct incstack__tracefile_header header;
	const int fd = open(file, O_WRONLY | O_CLOEXEC);

	dup2(messages, STDERR_FILENO);
	incstack__tracefile_header_init(&header, 1, 1, 0, 0, "command");
	if (fd < 0 || ftruncate(fd, INCSTACK__TRACEFILE_START) != 0 ||
	    write(fd, &header, sizeof(header)) != (ssize_t)sizeof(header))
		_exit(3);
	packed_path = is_full ? "/dev/full" : "/dev/null";
	tool_trace_pack(file, NULL);
	_exit(replaced);
}

/* Runs one of these functions, with the number. */
static int status_of(void (*run)(size_t, int), size_t at, char *text, size_t bytes)
{
	int messages[2], status;
	pid_t pid;
	ssize_t got;

	ck_assert_int_eq(pipe(messages), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		run(at, messages[1]);
	close(messages[1]);
	memset(text, 0, bytes);
	for (size_t used = 0; (got = read(messages[0], text + used, bytes - 1 - used)) > 0;)
		used += (size_t)got;
	close(messages[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

START_TEST(missing_page)
{
	char text[200], expected[200];
	const int status = status_of(read_byte, 2 * PAGE_BYTES + 5, text, sizeof(text));

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 1);
	snprintf(expected, sizeof(expected),
		 "incstack: %s: the file became shorter while it was read\n", file);
	ck_assert_str_eq(text, expected);
}
END_TEST

START_TEST(page_that_is_left)
{
	char text[200];

	ck_assert_int_eq(status_of(read_byte, 100, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(full_disk)
{
	char text[300], expected[300];
	const int status = status_of(pack_file, 1, text, sizeof(text));

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	snprintf(expected, sizeof(expected),
		 "incstack: %s stays as large as it is, because packing it failed: "
		 "No space left on device\n",
		 file);
	ck_assert_str_eq(text, expected);
}
END_TEST

START_TEST(room_on_the_disk)
{
	char text[300];
	const int status = status_of(pack_file, 0, text, sizeof(text));

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 1);
	ck_assert_str_eq(text, "");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace map");
	TCase *tests = tcase_create("trace map");

	tcase_add_checked_fixture(tests, make_file, remove_file);
	tcase_add_test(tests, missing_page);
	tcase_add_test(tests, page_that_is_left);
	tcase_add_test(tests, full_disk);
	tcase_add_test(tests, room_on_the_disk);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
