/* SPDX-License-Identifier: MIT
 *
 * Preloaded, it simulates a full disk: 300000 bytes in total can be written to high descriptors. The
 * variable FULL_DISK_ERROR has the number of another error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HIGH = 100, MOST = 300000 };

static size_t written;

/* Returns how much of the parts there is room for. */
static size_t room_for(const struct iovec *parts, int count)
{
	size_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return bytes < MOST - written ? bytes : MOST - written;
}

/* Only the last part that is written may be cut. */
static ssize_t write_some(int fd, const struct iovec *parts, int count, size_t bytes)
{
	for (int i = 0; i < count && bytes > 0; i++) {
		const size_t part = bytes < parts[i].iov_len ? bytes : parts[i].iov_len;

		if (syscall(SYS_write, fd, parts[i].iov_base, part) != (long)part)
			return -1;
		bytes -= part;
		written += part;
	}
	return 0;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	size_t bytes;

	if (fd < HIGH)
		return syscall(SYS_writev, fd, parts, count);
	bytes = room_for(parts, count);
	if (bytes > 0)
		return write_some(fd, parts, count, bytes) == 0 ? (ssize_t)bytes : -1;
	errno = getenv("FULL_DISK_ERROR") != NULL ? atoi(getenv("FULL_DISK_ERROR")) : ENOSPC;
	return -1;
}
