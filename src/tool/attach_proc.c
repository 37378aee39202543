/* SPDX-License-Identifier: MIT
 *
 * Reads small files that describe another process, and prints why it is refused.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* O_CLOEXEC */
#endif
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "attach.h"

size_t tool_attach_read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, size - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

int tool_attach_refuse(pid_t pid, const char *verb, const char *reason)
{
	fprintf(stderr, "incstack: cannot %s process %d: %s\n", verb, (int)pid, reason);
	return TOOL_STATUS_CANNOT_RUN;
}
