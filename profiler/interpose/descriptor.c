/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions that close descriptors or put another file at a number, so that the
 * recorder's descriptor stays open. To the program, its number seems not to be open. If the
 * program puts a file at that number, the recorder moves its own.
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "stub.h"

INCSTACK__REAL(close)
INCSTACK__REAL(dup2)
INCSTACK__REAL(dup3)
#if __GLIBC_PREREQ(2, 34)
INCSTACK__REAL(close_range)
INCSTACK__REAL(closefrom)
#endif

/* Returns the recorder's descriptor if it is in the range, else -1. */
static int kept(unsigned low, unsigned high)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	return recorder ? recorder->on_close(low, high) : -1;
}

static void make_way(int fd)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_replace(fd);
}

INCSTACK__INTERPOSED int close(int fd)
{
	if (kept((unsigned)fd, (unsigned)fd) < 0)
		return close_next()(fd);
	errno = EBADF;
	return -1;
}

INCSTACK__INTERPOSED int dup2(int from, int to)
{
	make_way(to);
	return dup2_next()(from, to);
}

INCSTACK__INTERPOSED int dup3(int from, int to, int flags)
{
	make_way(to);
	return dup3_next()(from, to, flags);
}

#if __GLIBC_PREREQ(2, 34)
/* Closes the range except the recorder's descriptor: first the part below it, then the part
 * above. */
INCSTACK__INTERPOSED int close_range(unsigned low, unsigned high, int flags)
{
	const int fd = kept(low, high);
	const unsigned number = (unsigned)fd;
	int error = 0;

	if (fd < 0)
		return close_range_next()(low, high, flags);
	if (number > low)
		error = close_range_next()(low, number - 1, flags);
	if (error == 0 && number < high)
		error = close_range_next()(number + 1, high, flags);
	return error;
}

INCSTACK__INTERPOSED void closefrom(int low)
{
	const int fd = kept(low > 0 ? (unsigned)low : 0, UINT_MAX);

	if (fd >= 0) {
		for (int i = low > 0 ? low : 0; i < fd; i++)
			close_next()(i);
		low = fd + 1;
	}
	closefrom_next()(low);
}
#endif
