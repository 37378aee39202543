/* SPDX-License-Identifier: MIT
 *
 * Tests the number that the descriptor of the trace file gets: high, where programs do not look.
 */
#include <check.h>
#include <limits.h>
#include <sys/resource.h>

#include "refused.h"
#include "record_file.h"
#include "run_suite.h"

static const struct {
	rlim_t limit;
	int least;
} numbers[] = {{HIGH + BELOW_LIMIT + 1, HIGH},
	       {HIGH + BELOW_LIMIT, HIGH},
	       {3 * BELOW_LIMIT, 2 * BELOW_LIMIT},
	       {2 * BELOW_LIMIT + 1, BELOW_LIMIT + 1},
	       {2 * BELOW_LIMIT, 0}};

/* High, where programs do not look, and below the limit with room. */
START_TEST(numbers_below_the_limit)
{
	const struct rlimit limit = {numbers[_i].limit, HIGH + BELOW_LIMIT + 1};
	int lowest;

	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		return; /* this process must not have so many */
	lowest = open("/dev/null", O_RDONLY);
	close(lowest);
	ck_assert_int_eq(incstack__record_open(path), 0);
	ck_assert_int_eq(incstack__recording.fd,
			 numbers[_i].least ? numbers[_i].least : lowest + 1);
	ck_assert_int_ge(fcntl(incstack__recording.fd, F_GETFD), FD_CLOEXEC);
	incstack__record_close();
}
END_TEST

/* A program that was started without descriptors would otherwise read the trace file from number
 * 0. */
START_TEST(number_0_is_free)
{
	ck_assert_int_eq(close(0), 0);
	ck_assert_int_eq(incstack__record_open(path), 0);
	ck_assert_int_gt(incstack__recording.fd, 0);
	ck_assert_int_eq(fcntl(0, F_GETFD), -1);
	incstack__record_close();
}
END_TEST

/* The program puts a file of its own at the number: that file is left alone, and the trace
 * file is opened again. */
START_TEST(number_of_the_program)
{
	const int other = open(folder, O_RDONLY | O_DIRECTORY);
	struct stat status;
	int fd;

	ck_assert_int_eq(incstack__record_open(path), 0);
	fd = incstack__recording.fd;
	incstack__recording.on = 1;
	ck_assert_int_eq(incstack__record_on_close(0, UINT_MAX), fd);
	ck_assert_int_eq(incstack__record_on_close((unsigned)fd, (unsigned)fd), fd);
	ck_assert_int_eq(incstack__record_on_close((unsigned)fd + 1, UINT_MAX), -1);
	ck_assert_int_eq(incstack__record_on_close(0, (unsigned)fd - 1), -1);
	incstack__recording.pid++; /* a child of vfork */
	ck_assert_int_eq(incstack__record_on_close(0, UINT_MAX), -1);
	incstack__recording.pid--;
	incstack__recording.on = 0;
	ck_assert_int_eq(incstack__record_on_close(0, UINT_MAX), -1);
	incstack__recording.on = 1;
	ck_assert_int_eq(dup2(other, fd), fd);
	errno = ERANGE;
	ck_assert_int_eq(incstack__record_on_close(0, UINT_MAX), -1);
	incstack__record_on_replace(fd);
	ck_assert_int_eq(errno, ERANGE);
	ck_assert_int_eq(incstack__recording.fd, fd);
	ck_assert_int_eq(incstack__record_write(path, 1), 0);
	ck_assert_int_ne(incstack__recording.fd, fd);
	ck_assert_int_eq(size_of_file(), INCSTACK__TRACEFILE_START + 1);
	ck_assert_int_eq(fstat(fd, &status), 0);
	ck_assert(S_ISDIR(status.st_mode));
	ck_assert_int_eq(is_locked(open(path, O_RDWR)), 1); /* against other runs, as before */
	/* A file on the same device, and one with the same number on another device. */
	const int lowest = fcntl(other, F_DUPFD, HIGH);
	close(lowest);
	fd = incstack__recording.fd;
	incstack__recording.device++;
	ck_assert_int_eq(incstack__record_on_close(0, UINT_MAX), -1);
	incstack__recording.device--;
	incstack__recording.inode++;
	ck_assert_int_eq(incstack__record_on_close(0, UINT_MAX), -1);
	ck_assert_int_eq(incstack__record_write(path, 1), -1); /* nor is it the file that is there
	                                                        * now */
	incstack__recording.inode--;
	ck_assert_int_eq(fcntl(other, F_DUPFD, HIGH), lowest); /* nothing is left open */
	ck_assert_int_eq(dup2(other, fd), fd);
	incstack__record_close();
	ck_assert_int_eq(fstat(fd, &status), 0);
	ck_assert_int_eq(incstack__record_on_close(0, UINT_MAX), -1);
}
END_TEST

/* The descriptor moves to another number, a higher one if possible. */
START_TEST(number_is_wanted)
{
	int fd, moved;

	ck_assert_int_eq(incstack__record_open(path), 0);
	incstack__recording.on = 1;
	fd = incstack__recording.fd;
	incstack__record_on_replace(fd + 1);
	ck_assert_int_eq(incstack__recording.fd, fd);
	incstack__record_on_replace(fd);
	moved = incstack__recording.fd;
	ck_assert_int_gt(moved, fd);
	refuse("fcntl", 0, 1, EINVAL);
	errno = ERANGE;
	incstack__record_on_replace(moved);
	ck_assert_int_eq(errno, ERANGE);
	ck_assert_int_ne(incstack__recording.fd, moved);
	ck_assert_int_lt(incstack__recording.fd, fd);
	fd = incstack__recording.fd;
	refuse("fcntl", 0, 2, EMFILE);
	incstack__record_on_replace(fd);
	ck_assert_uint_eq(refusal.calls, 2);
	ck_assert_int_eq(incstack__recording.fd, fd);
	refuse_nothing();
	ck_assert_int_eq(incstack__record_write(path, 1), 0);
	incstack__record_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("descriptor of the trace file");
	TCase *numbers_case = tcase_create("numbers");

	tcase_add_checked_fixture(numbers_case, make_folder, remove_folder);
	tcase_add_loop_test(numbers_case, numbers_below_the_limit, 0,
			    sizeof(numbers) / sizeof(numbers[0]));
	tcase_add_test(numbers_case, number_of_the_program);
	tcase_add_test(numbers_case, number_0_is_free);
	tcase_add_test(numbers_case, number_is_wanted);
	suite_add_tcase(suite, numbers_case);
	return run_suite(suite);
}
