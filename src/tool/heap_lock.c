/* SPDX-License-Identifier: MIT
 *
 * Two runs must not record into one file. A run has a name of the trace file for as long as
 * the tool runs: a socket in the abstract namespace, which ends with its process, whatever
 * ends that. A process that outlives its tool has its own file locked.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* struct ucred */
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "heapfile/trace_format.h"
#include "heap.h"

/* The file by its directory and a hash of its name; there are 107 bytes for it. */
static socklen_t name_socket(const char *file, struct sockaddr_un *name)
{
	const char *slash = strrchr(file, '/');
	uint64_t hash = 0xcbf29ce484222325;
	char directory[PATH_MAX];
	struct stat status = {0};
	int length;

	snprintf(directory, sizeof(directory), "%.*s/", (int)(slash - file), file);
	stat(directory, &status);
	for (const char *at = slash; *at != '\0'; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
	name->sun_family = AF_UNIX;
	length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
			  "incstack-heap-%" PRIx64 "-%" PRIx64 "-%" PRIx64, (uint64_t)status.st_dev,
			  (uint64_t)status.st_ino, hash);
	name->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Who has the name; 0: it cannot be known. */
static pid_t owner_of(const struct sockaddr_un *name, socklen_t length)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct ucred owner = {0};
	socklen_t size = sizeof(owner);

	if (connect(fd, (const struct sockaddr *)name, length) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) != 0)
		owner.pid = 0;
	if (fd >= 0)
		close(fd);
	return owner.pid;
}

/* Who writes the file, by its header; 0: nobody. */
static pid_t writer_of(const char *file)
{
	static struct incstack__trace_header header;
	const int fd = open(file, O_RDONLY | O_CLOEXEC);
	pid_t writer = 0;

	if (fd < 0)
		return 0;
	if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		writer = pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
					 header.pid <= INT_MAX
				 ? (pid_t)header.pid
				 : -1;
	close(fd);
	return writer;
}

static int refuse(const char *file, pid_t writer)
{
	if (writer > 0)
		fprintf(stderr,
			"incstack: %s is being written by process %d; choose another file with "
			"-o\n",
			file, (int)writer);
	else
		fprintf(stderr,
			"incstack: %s is being written by another process; choose another file "
			"with -o\n",
			file);
	return TOOL_STATUS_CANNOT_RUN;
}

int tool_heap_lock(const char *file)
{
	struct sockaddr_un name;
	const socklen_t length = name_socket(file, &name);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const pid_t writer = writer_of(file);

	if (writer != 0) {
		close(fd);
		return refuse(file, writer);
	}
	if (fd < 0 || bind(fd, (const struct sockaddr *)&name, length) == 0 ||
	    errno != EADDRINUSE) {
		listen(fd, 8); /* so that another run learns who it is; stays open */
		return 0;
	}
	close(fd);
	return refuse(file, owner_of(&name, length));
}
