/* SPDX-License-Identifier: MIT
 *
 * Tells whether a thread of this process sleeps in a system call. A thread that only gets no processor does
 * not sleep.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int sleeps(int tid)
{
	char path[64];
	char text[512];
	ssize_t bytes;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	bytes = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[bytes > 0 ? bytes : 0] = '\0';
	return strstr(text, ") S ") != NULL;
}
