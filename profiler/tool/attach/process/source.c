/* SPDX-License-Identifier: MIT
 *
 * Opens the file of a mapping. The process may see other files under the same name: it may be in
 * another mount namespace, and the file may have been replaced, also by a pipe, a device or a link to
 * one. So nothing is opened before it is known to be a regular file with the inode that the kernel
 * reports for the mapping. A link is not followed: the kernel reports names without links.
 *
 * The request may come from a worker that the process has taken over. Then nothing in the mapping is true.
 * So a name is looked up only with the rights of the process's own user. The numbers of a mapping need no
 * such care: by them the kernel finds only files that the process has mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tool/foreign.h"
#include "source.h"
#include "tool/proc.h"

enum way { WAY_NAME, WAY_ROOT, WAY_MAPPING, WAYS };

/* Whether the descriptor is that of the mapped file. Some file systems have another device number for
 * their files than for their mappings (btrfs), so only the inode must be the same there. */
static bool is_mapped_file(int fd, const struct tool_attach_mapping *mapping)
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

/* ---- the rights of the process ---------------------------------------------------------------- */

int tool_attach_target_open(struct tool_attach_target *target, pid_t pid)
{
	char path[32];

	target->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	target->directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (target->directory < 0)
		return errno;
	target->user = (uid_t)tool_proc_id(pid, "\nUid:\t");
	target->group = (gid_t)tool_proc_id(pid, "\nGid:\t");
	return 0;
}

void tool_attach_target_close(struct tool_attach_target *target)
{
	if (target->directory >= 0)
		close(target->directory);
	target->directory = -1;
}

/* Whether files are to be opened with other rights than those of the tool. */
static bool is_other(const struct tool_attach_target *target)
{
	return geteuid() == 0 && target->user != 0;
}

enum { GROUPS_MOST = 65536 };

struct rights {
	gid_t groups[GROUPS_MOST];
	int count;
	bool has_users;
	bool has_groups;
};

/* The rights of this thread only. Returns non-zero if they cannot be had. */
static int take_rights(const struct tool_attach_target *target, struct rights *rights)
{
	rights->has_users = rights->has_groups = false;
	if (!is_other(target))
		return 0;
	rights->count = getgroups(GROUPS_MOST, rights->groups);
	rights->has_groups = rights->count >= 0 && syscall(SYS_setgroups, 0, NULL) == 0;
	rights->has_users = true;
	setfsgid(target->group);
	setfsuid(target->user);
	/* They say only what was before. */
	return rights->has_groups && (uid_t)setfsuid((uid_t)-1) == target->user &&
			       (gid_t)setfsgid((gid_t)-1) == target->group
		       ? 0
		       : -1;
}

static void give_rights_back(const struct rights *rights)
{
	if (rights->has_users) {
		setfsuid(geteuid());
		setfsgid(getegid());
	}
	if (rights->has_groups)
		syscall(SYS_setgroups, rights->count, rights->groups);
}

/* ---- the ways to a file ------------------------------------------------------------------------- */

/* The names of a file: as the tool sees it, as the process sees it, or by the mapping, which also works
 * if it was deleted, but needs rights. */
static char *name_of(const struct tool_attach_target *target,
		     const struct tool_attach_mapping *mapping, enum way way)
{
	char *name = NULL;
	int bytes = 0;

	if (way == WAY_NAME)
		return strdup(mapping->path);
	if (way == WAY_ROOT)
		bytes = asprintf(&name, "/proc/%d/root%s", (int)target->pid, mapping->path);
	else
		bytes = asprintf(&name, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)target->pid,
				 mapping->low, mapping->high);
	return bytes < 0 ? NULL : name;
}

static int find_below_root(int root, const char *path)
{
	int fd = -1;

	if (root >= 0 && path[0] == '/')
		fd = find_below(root, path);
	if (root >= 0)
		close(root);
	return fd;
}

/* Finds the file in that way. Returns a descriptor that only names it, or -1. */
static int find(const struct tool_attach_target *target, const struct tool_attach_mapping *mapping,
		enum way way)
{
	enum { PLACE = O_PATH | O_CLOEXEC };
	char name[64];

	if (way == WAY_NAME)
		return find_below_root(open("/", PLACE | O_DIRECTORY), mapping->path);
	if (way == WAY_ROOT)
		return find_below_root(openat(target->directory, "root", PLACE | O_DIRECTORY),
				       mapping->path);
	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, mapping->low, mapping->high);
	return openat(target->directory, name, PLACE); /* a link of the kernel's own */
}

/* Opens what the descriptor names, if that is the mapped file, and closes it. */
static int open_found(int found, const struct tool_attach_mapping *mapping)
{
	int fd = -1;

	if (found >= 0 && is_mapped_file(found, mapping))
		fd = tool_foreign_reopen(found, 0);
	if (found >= 0)
		close(found);
	return fd;
}

/* The root of a process is a link that needs the rights of the tool. */
static int open_by(const struct tool_attach_target *target,
		   const struct tool_attach_mapping *mapping, enum way way)
{
	static struct rights rights;
	int fd = -1;

	if (way == WAY_MAPPING)
		return open_found(find(target, mapping, way), mapping);
	if (take_rights(target, &rights) == 0)
		fd = open_found(find(target, mapping, way), mapping);
	give_rights_back(&rights);
	return fd;
}

int tool_attach_source_open(const struct tool_attach_target *target,
			    const struct tool_attach_mapping *mapping, char **path)
{
	int fd = -1;

	if (path)
		*path = NULL;
	for (enum way way = WAY_NAME; fd < 0 && way < WAYS; way++) {
		fd = open_by(target, mapping, way);
		if (fd >= 0 && path)
			*path = name_of(target, mapping, way);
	}
	return fd;
}
