/* SPDX-License-Identifier: MIT
 *
 * The recorder's trace file: what cannot be begun leaves no file, and leaves alone what is
 * there; what cannot be written any more is noted once, and nothing follows it.
 */
#include "../../src/recorder/descriptor.c"
#include "../../src/recorder/file.c"

#include <stdlib.h>
#include <signal.h>

#include "run_suite.h"

struct incstack__recording incstack__recording;
static char folder[32], path[64];
static unsigned spools;

void incstack__spool_open(const char *of, uint64_t start_ns)
{
	ck_assert_str_eq(of, path);
	ck_assert_uint_gt(start_ns, 0);
	spools++;
}

static void make_folder(void)
{
	strcpy(folder, "/tmp/incstack-file-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/trace", folder);
	incstack__recording.pid = getpid();
	incstack__recording.interval = 1;
	incstack__recording.fd = -1;
}

static void remove_folder(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

static off_t size_of_file(void)
{
	struct stat status;

	return stat(path, &status) == 0 ? status.st_size : -1;
}

static void limit_files(rlim_t bytes)
{
	const struct rlimit limit = {bytes, RLIM_INFINITY};

	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int is_noted(enum incstack__trace_note note)
{
	return incstack__recording.slots[0].notes >> note & 1;
}

START_TEST(begun_and_ended)
{
	static const char block[] = "a block";
	char read_back[sizeof(block)];
	int fd;

	incstack__recording.why = 4;
	ck_assert_int_eq(incstack__record_open(path), 0);
	ck_assert_uint_eq(spools, 1);
	ck_assert_str_eq(incstack__recording.path, path);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACE_START);
	ck_assert_uint_eq(incstack__recording.slots[0].notes, 4);
	ck_assert_int_eq(incstack__record_write(block, sizeof(block)), 0);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACE_START + sizeof(block));
	fd = open(path, O_RDONLY);
	ck_assert_int_eq(pread(fd, read_back, sizeof(block), INCSTACK__TRACE_START), sizeof(block));
	ck_assert_str_eq(read_back, block);
	close(fd);
	incstack__record_close();
	ck_assert_ptr_null(incstack__recording.slots);
	ck_assert_int_eq(incstack__recording.fd, -1);
}
END_TEST

/* Another run writes there. */
START_TEST(file_of_another_run)
{
	const int fd = open(path, O_RDWR | O_CREAT, 0666);

	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(write(fd, path, sizeof(path)), sizeof(path));
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_int_eq(incstack__recording.fd, -1);
	ck_assert_uint_eq(spools, 0);
	ck_assert_int_eq(size_of_file(), sizeof(path));
	close(fd); /* it has ended: what it has left is overwritten */
	ck_assert_int_eq(incstack__record_open(path), 0);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACE_START);
	incstack__record_close();
}
END_TEST

/* A file that cannot be emptied is no trace file, and stays. */
START_TEST(what_is_no_file_stays)
{
	ck_assert_int_eq(symlink("/dev/null", path), 0);
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_uint_eq(spools, 0);
}
END_TEST

/* The header alone would be too long. */
START_TEST(limit_before_the_start)
{
	limit_files(INCSTACK__TRACE_START - 1);
	ck_assert_int_eq(incstack__record_open(path), -1);
	ck_assert_int_eq(size_of_file(), -1);
	limit_files(INCSTACK__TRACE_START);
	ck_assert_int_eq(incstack__record_open(path), 0);
	incstack__record_close();
}
END_TEST

/* At the limit to the byte, then one behind it: no signal comes, and no block may follow one
 * that is missing. */
START_TEST(limit_while_recording)
{
	static const char block[100];

	ck_assert_int_eq(incstack__record_open(path), 0);
	limit_files(INCSTACK__TRACE_START + sizeof(block));
	ck_assert_int_eq(incstack__record_write(block, sizeof(block)), 0);
	ck_assert_int_eq(is_noted(INCSTACK__NOTE_FILE_LIMIT), 0);
	ck_assert_int_eq(incstack__record_write(block, 1), -1);
	ck_assert_int_eq(is_noted(INCSTACK__NOTE_FILE_LIMIT), 1);
	limit_files(RLIM_INFINITY);
	ck_assert_int_eq(incstack__record_write(block, 1), -1);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACE_START + sizeof(block));
	incstack__record_close();
}
END_TEST

/* The program closed the descriptor, and took the file away. */
START_TEST(file_that_is_gone)
{
	ck_assert_int_eq(incstack__record_open(path), 0);
	close(incstack__recording.fd);
	ck_assert_int_eq(incstack__record_write(path, 1), 0); /* it is opened again */
	close(incstack__recording.fd);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(incstack__record_write(path, 1), -1);
	ck_assert_int_eq(is_noted(INCSTACK__NOTE_FILE_CLOSED), 1);
	ck_assert_int_eq(is_noted(INCSTACK__NOTE_FILE_LIMIT), 0);
	incstack__record_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trace file of the recorder");
	TCase *files = tcase_create("files");

	tcase_add_checked_fixture(files, make_folder, remove_folder);
	tcase_add_test(files, begun_and_ended);
	tcase_add_test(files, file_of_another_run);
	tcase_add_test(files, what_is_no_file_stays);
	tcase_add_test(files, limit_before_the_start);
	tcase_add_test(files, limit_while_recording);
	tcase_add_test(files, file_that_is_gone);
	suite_add_tcase(suite, files);
	return run_suite(suite);
}
