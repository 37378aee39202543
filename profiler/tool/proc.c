/* SPDX-License-Identifier: MIT
 *
 * Reads small files in /proc that describe another process.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc.h"

size_t tool_proc_read(pid_t pid, const char *name, char *text, size_t size)
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

uint64_t tool_proc_number(const char *stat, int number)
{
	enum { NAME = 2 }; /* the field before the last ')'; it may contain anything */
	const char *at = strrchr(stat, ')');

	for (int field = NAME; at != NULL && field < number; field++)
		at = strchr(at + 1, ' ');
	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

uint64_t tool_proc_stat(pid_t pid, const char *name, int number)
{
	char text[1024];

	tool_proc_read(pid, name, text, sizeof(text));
	return tool_proc_number(text, number);
}

const char *tool_proc_field(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at != NULL ? at + strlen(name) : "";
}

int tool_proc_has_ended(const char *status)
{
	const char state = tool_proc_field(status, "\nState:\t")[0];

	return state == 'Z' || state == 'X' || state == '\0';
}

long tool_proc_id(pid_t pid, const char *name)
{
	enum { OF_FILES = 3 };
	char status[4096];
	const char *at;

	tool_proc_read(pid, "status", status, sizeof(status));
	at = tool_proc_field(status, name);
	for (int i = 0; i < OF_FILES && at != NULL; i++)
		at = strchr(at, '\t') != NULL ? strchr(at, '\t') + 1 : NULL;
	return at != NULL ? strtol(at, NULL, 10) : -1;
}
