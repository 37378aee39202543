/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 60000
 *
 * A daemon: it closes every descriptor and puts files of its own at every number, where
 * the recorder cannot open the trace file again, for that has another name meanwhile.
 * Nothing is lost, and the program's files are its own.
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
	return move_trace(1) != 0 ? 8 : error;
}
