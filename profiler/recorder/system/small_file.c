/* SPDX-License-Identifier: MIT
 *
 * Reads a small file of /proc.
 */
#include <fcntl.h>
#include <unistd.h>

#include "kernel.h"
#include "recorder/system/system.h"

size_t incstack__record_read_small(const char *path, char *text, size_t size)
{
	const int fd = incstack__kernel_open(path, O_RDONLY | O_CLOEXEC, 0);
	const ssize_t got = fd >= 0 ? incstack__kernel_read(fd, text, size - 1) : -1;
	const size_t bytes = got > 0 ? (size_t)got : 0;

	if (fd >= 0)
		incstack__kernel_close(fd);
	text[bytes] = '\0';
	return bytes;
}
