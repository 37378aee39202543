/* SPDX-License-Identifier: MIT
 *
 * Opens the file of a mapping. The process may see other files under the same name: it may be in
 * another mount namespace, and the file may have been replaced, also by a pipe, a device or a link to
 * one. So nothing is opened before it is known to be a regular file with the inode that the kernel
 * reports for the mapping. A link is not followed: the kernel reports names without links.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* asprintf, O_PATH */
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "source.h"

enum way { WAY_NAME, WAY_ROOT, WAY_MAPPING, WAYS };

/* Whether the descriptor is that of the mapped file. Some file systems have another device number for
 * their files than for their mappings (btrfs), so only the inode must be the same there. */
static int is_mapped_file(int fd, const struct tool_attach_mapping *mapping)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       status.st_ino == mapping->inode &&
	       (status.st_dev == mapping->device || major(mapping->device) == 0);
}

/* Finds a file below a directory, without links on the way. Before Linux 5.6 only the last part of the
 * name is known to be no link. */
static int find_below(int directory, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_IN_ROOT,
	};
	const int fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));

	while (*path == '/')
		path++;
	return fd >= 0 || errno != ENOSYS
		       ? fd
		       : openat(directory, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* The names of a file: as the tool sees it, as the process sees it, or by the mapping, which also works
 * if it was deleted, but needs rights. */
static char *name_of(const struct tool_attach_source *source, enum way way)
{
	const struct tool_attach_mapping *mapping = &source->mapping;
	char *name = NULL;
	int bytes = 0;

	if (way == WAY_NAME)
		return strdup(mapping->path);
	if (way == WAY_ROOT)
		bytes = asprintf(&name, "/proc/%d/root%s", (int)source->pid, mapping->path);
	else
		bytes = asprintf(&name, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)source->pid,
				 mapping->low, mapping->high);
	return bytes < 0 ? NULL : name;
}

static int find_in_root(const struct tool_attach_source *source, enum way way)
{
	char root[64] = "/";
	int directory;
	int fd;

	if (way == WAY_ROOT)
		snprintf(root, sizeof(root), "/proc/%d/root", (int)source->pid);
	directory = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return -1;
	fd = find_below(directory, source->mapping.path);
	close(directory);
	return fd;
}

/* Finds the file in that way. Returns a descriptor that only names it, or -1. */
static int find(const struct tool_attach_source *source, enum way way)
{
	char name[80];
	int fd;

	if (way == WAY_MAPPING) {
		snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
			 (int)source->pid, source->mapping.low, source->mapping.high);
		fd = open(name, O_PATH | O_CLOEXEC); /* a link of the kernel's own */
	} else {
		fd = source->mapping.path[0] == '/' ? find_in_root(source, way) : -1;
	}
	if (fd < 0 || is_mapped_file(fd, &source->mapping))
		return fd;
	close(fd);
	return -1;
}

/* Opens what the descriptor names. */
static int open_found(int found)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", found);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(found);
	return fd;
}

int tool_attach_source_open(const struct tool_attach_source *source, char **path)
{
	int found = -1;
	int fd = -1;

	if (path != NULL)
		*path = NULL;
	for (enum way way = WAY_NAME; fd < 0 && way < WAYS; way++) {
		found = find(source, way);
		fd = found >= 0 ? open_found(found) : -1;
		if (fd >= 0 && path != NULL)
			*path = name_of(source, way);
	}
	return fd;
}
