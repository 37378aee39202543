/* SPDX-License-Identifier: MIT
 *
 * Keeps two runs from recording into one file. As long as the tool runs, it holds a socket in the
 * abstract namespace, whose name is made from the file's name. The socket ends with the tool,
 * whatever ends it. A process that outlives its tool has locked its own file.
 */
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

#include "tracefile/format.h"
#include "tool/foreign.h"
#include "tool/names.h"
#include "record.h"

/* Makes the name of the socket from the directory and a hash of the file's name. It has 107
 * bytes. */
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

/* Returns the process that holds the socket; 0 if it is unknown. */
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

/* Returns the process that writes the file, from its header; 0 if there is none. */
static pid_t writer_of(const char *file)
{
	static struct incstack__tracefile_header header;
	const char *why;
	const int fd = tool_foreign_open(file, NULL, NULL, &why);
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
			tool_name(file), (int)writer);
	else
		fprintf(stderr,
			"incstack: %s is being written by another process; choose another file "
			"with -o\n",
			tool_name(file));
	return TOOL_STATUS_CANNOT_RUN;
}

int tool_record_lock(const char *file)
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
		listen(fd, 8); /* lets another run find the holder; stays open */
		return 0;
	}
	close(fd);
	return refuse(file, owner_of(&name, length));
}
