/* SPDX-License-Identifier: MIT
 *
 * Reads a small file of /proc.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "recorder.h"

size_t incstack__record_read_small(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
	const size_t bytes = got > 0 ? (size_t)got : 0;

	if (fd >= 0)
		close(fd);
	text[bytes] = '\0';
	return bytes;
}
