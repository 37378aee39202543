/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 60000
 *
 * A daemon: it closes every descriptor and puts files of its own at every number. The recorder
 * cannot open the trace file again, because the file was renamed in the meantime. Nothing is
 * lost, and nothing is written to the program's files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nest.h"

enum { NUMBERS = 1024 };

static void allocate_much(void)
{
	for (int i = 0; i < 10000; i++)
		nest(3, allocate);
}

/* There and back. Without the recorder there is no file. */
static int move_trace(int back)
{
	const char *configuration = getenv("INCSTACK_HEAP");
	const char *file = configuration != NULL ? strstr(configuration, "file=") : NULL;
	char moved[4200];

	if (file == NULL)
		return 0;
	file += strlen("file=");
	snprintf(moved, sizeof(moved), "%s.moved", file);
	return back ? rename(moved, file) : rename(file, moved);
}

static int fill(int own)
{
	for (int fd = own + 1; fd < NUMBERS; fd++)
		if (dup2(own, fd) != fd)
			return 2;
	allocate_much();
	return 0;
}

/* The recorder's number: it is open, but must not be closed. Without the recorder there is none. */
static int hidden_number(int own)
{
	for (int fd = own + 1; fd < NUMBERS + 64; fd++)
		if (fcntl(fd, F_GETFD) != -1 && close(fd) == -1)
			return fd;
	return own + 2;
}

/* Each range that begins or ends at that number, with files of the program beside it. */
static int close_around(int own)
{
	static const int ranges[][2] = {{0, 0}, {-1, 0}, {0, 1}, {-1, 1}, {1, 1}, {-1, -1}};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		const int fd = hidden_number(own), low = fd + ranges[i][0],
			  high = fd + ranges[i][1];

		if (dup2(own, fd - 1) < 0 || dup2(own, fd + 1) < 0 ||
		    close_range((unsigned)low, (unsigned)high, 0) != 0)
			return 1;
		if ((fcntl(fd - 1, F_GETFD) == -1) != (low < fd) ||
		    (fcntl(fd + 1, F_GETFD) == -1) != (high > fd))
			return 2;
		nest(3, allocate);
		close(fd - 1);
		close(fd + 1);
	}
	if (close_range(9, 8, 0) != -1 || errno != EINVAL)
		return 3;
	closefrom(hidden_number(own) + 1);
	return 0;
}

int main(void)
{
	char name[] = "/tmp/stacks_descriptors.XXXXXX";
	const int own = mkstemp(name);
	struct stat status;
	int error;

	if (own < 0 || unlink(name) != 0 || move_trace(0) != 0)
		return 1;
	error = fill(own);
	for (int fd = own + 1; fd < NUMBERS; fd++)
		if (close(fd) != 0)
			error = 3;
	for (int fd = own + 1; fd < NUMBERS + 1; fd++)
		if (close(fd) != -1 || errno != EBADF)
			error = 4;
	allocate_much();
	error = error != 0 ? error : fill(own);
	if (close_range((unsigned)own + 1, ~0u, 0) != 0 || dup(own) != own + 1)
		error = 5;
	allocate_much();
	closefrom(own + 1);
	if (fcntl(own + 1, F_GETFD) != -1 || dup3(own, 900, O_CLOEXEC) != 900)
		error = 6;
	allocate_much();
	if (fstat(own, &status) != 0 || status.st_size != 0)
		error = 7; /* written into by another */
	allocate_much();
	if (move_trace(1) != 0)
		return 8;
	if (close_around(own) != 0)
		return 10 + close_around(own);
	closefrom(0);
	allocate_much();
	return error;
}
