/* SPDX-License-Identifier: MIT
 *
 * Preloaded, it simulates a full disk: 300000 bytes in total can be written to high descriptors.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HIGH = 100, MOST = 300000 };

ssize_t write(int fd, const void *data, size_t bytes)
{
	static size_t written;

	if (fd >= HIGH && written + bytes > MOST)
		bytes = MOST - written;
	if (fd >= HIGH && bytes == 0) {
		errno = ENOSPC;
		return -1;
	}
	if (fd >= HIGH)
		written += bytes;
	return syscall(SYS_write, fd, data, bytes);
}
