/* SPDX-License-Identifier: MIT
 *
 * The name is resolved once, to a descriptor that does not open the file (O_PATH). What it leads to is
 * checked, and then opened through the descriptor. So nobody can put another file there in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "foreign.h"

static const char *refusal(const struct stat *status, const struct tool_foreign *terms)
{
	if (S_ISLNK(status->st_mode))
		return "is a symbolic link";
	if (S_ISDIR(status->st_mode))
		return "is a directory";
	if (!S_ISREG(status->st_mode))
		return "is not a regular file";
	if (terms->bytes_most > 0 && (uint64_t)status->st_size > terms->bytes_most)
		return "is too large";
	if (!(terms->flags & TOOL_FOREIGN_OWNED))
		return NULL;
	if (status->st_uid != terms->owner && status->st_uid != geteuid() && status->st_uid != 0)
		return "belongs to another user";
	/* By custom a user's own group has the user's number and no other members. */
	if (status->st_mode & S_IWOTH ||
	    (status->st_mode & S_IWGRP && status->st_gid != status->st_uid))
		return "may be written by other users";
	return NULL;
}

/* O_NONBLOCK: a lease of another process is an error and no reason to wait. */
int tool_foreign_reopen(int place, unsigned flags)
{
	const int access = flags & TOOL_FOREIGN_WRITE ? O_RDWR : O_RDONLY;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	return open(path, access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int tool_foreign_open(const char *name, const struct tool_foreign *terms, struct stat *status,
		      const char **why)
{
	static const struct tool_foreign any = {.flags = 0};
	struct stat found;
	int place;
	int fd = -1;

	terms = terms != NULL ? terms : &any;
	status = status != NULL ? status : &found;
	place = open(name,
		     O_PATH | O_CLOEXEC | (terms->flags & TOOL_FOREIGN_NO_LINK ? O_NOFOLLOW : 0));
	*why = NULL;
	if (place >= 0 && fstat(place, status) == 0)
		*why = refusal(status, terms);
	if (place >= 0 && *why == NULL)
		fd = tool_foreign_reopen(place, terms->flags);
	if (fd < 0 && *why == NULL)
		*why = strerror(errno);
	if (place >= 0)
		close(place);
	return fd;
}

FILE *tool_foreign_stream(const char *name, const struct tool_foreign *terms, struct stat *status,
			  const char **why)
{
	const int fd = tool_foreign_open(name, terms, status, why);
	FILE *stream = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (fd >= 0 && stream == NULL) {
		*why = strerror(errno);
		close(fd);
	}
	return stream;
}
