/* SPDX-License-Identifier: MIT
 *
 * Output files. A file gets its name when it is complete. Until then it is a temporary file beside
 * it, which is removed if writing fails or a signal ends the tool. Something that is no regular
 * file (a pipe, a terminal) is written directly. There is one output at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ending.h"
#include "output.h"

static struct {
	int folder; /* where the file is; -1: none is open */
	char *name; /* of the file in the folder; it is no link that the tool follows */
	char *volatile temporary; /* its name in the folder; null if there is none */
	struct stat file;         /* what is written, if there is no temporary file */
	bool is_file;
} output = {.folder = -1};

void tool_output_abandon(void)
{
	if (output.temporary != NULL)
		unlinkat(output.folder, output.temporary, 0);
}

static void on_ending(int number)
{
	tool_output_abandon();
	raise(number); /* SA_RESETHAND: this time it ends the process */
}

/* A signal that the tool was started to ignore stays ignored. */
static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_ending, .sa_flags = (int)SA_RESETHAND};

	for (size_t i = 0; i < TOOL_ENDINGS; i++) {
		struct sigaction old;

		if (sigaction(tool_ending[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(tool_ending[i], &action, NULL);
	}
}

static void forget_output(void)
{
	char *temporary = output.temporary;

	output.temporary = NULL;
	free(temporary);
	free(output.name);
	output.name = NULL;
	if (output.folder >= 0)
		close(output.folder);
	output.folder = -1;
}

/* Whether somebody else could have put it there to lead the tool to another file, or to make it wait. */
static bool is_trap(const struct stat *status)
{
	return (S_ISLNK(status->st_mode) || S_ISFIFO(status->st_mode)) &&
	       status->st_uid != geteuid() && status->st_uid != 0;
}

/* Goes to the folder of a path, which is relative to the folder before. */
static bool enter_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	char *name = strdup(slash != NULL ? slash + 1 : path);
	int fd = -1;

	if (folder != NULL && name != NULL)
		fd = openat(output.folder >= 0 ? output.folder : AT_FDCWD, folder,
			    O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (fd < 0) {
		free(name);
		return false;
	}
	forget_output();
	output.folder = fd;
	output.name = name;
	return true;
}

/* Whether the folder is one of /proc, as with /dev/stdout. Its links are files that are open already. */
static bool is_in_proc(void)
{
	struct statfs system;

	return fstatfs(output.folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/* Opens what has the name now, for looking at it only. */
static int look(struct stat *status)
{
	int fd = -1;

	errno = EISDIR;
	if (*output.name != 0)
		fd = openat(output.folder, output.name,
			    O_PATH | O_CLOEXEC | (is_in_proc() ? 0 : O_NOFOLLOW));
	if (fd >= 0 && fstat(fd, status) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool follow(int link)
{
	char target[PATH_MAX];
	const ssize_t length = readlinkat(link, "", target, sizeof(target) - 1);

	if (length <= 0)
		return false;
	target[length] = 0;
	return enter_folder(target);
}

/* Finds the folder and name of an output, through links of the user and of root. Every step looks at a file
 * that is open, so nobody can exchange it between a check and its use. Returns what has the name, or -1;
 * errno is ENOENT if nothing has. */
static int find(const char *path, struct stat *status)
{
	enum { LINKS_MOST = 40 };

	if (!enter_folder(path))
		return -1;
	for (int links = 0; links < LINKS_MOST; links++) {
		int fd = look(status);
		bool followed;

		if (fd >= 0 && is_trap(status)) {
			close(fd);
			errno = EPERM;
			return -1;
		}
		if (fd < 0 || !S_ISLNK(status->st_mode))
			return fd;
		followed = follow(fd);
		close(fd);
		if (!followed)
			return -1;
	}
	errno = ELOOP;
	return -1;
}

/* Creates the temporary file beside the final one, with its permissions if that exists and is ours.
 * Returns -1 if that is impossible, for example because the folder cannot be written. */
static int open_temporary(const struct stat *existing)
{
	char *temporary = NULL;
	int fd;

	if (asprintf(&temporary, "%s.%d.part", output.name, (int)getpid()) < 0)
		return -1;
	output.temporary = temporary;
	catch_signals();
	fd = openat(output.folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0 && existing != NULL && existing->st_uid == geteuid() &&
	    fchmod(fd, existing->st_mode & 07777) != 0) {
		close(fd);
		unlinkat(output.folder, temporary, 0);
		fd = -1;
	}
	if (fd < 0) {
		output.temporary = NULL;
		free(temporary);
	}
	return fd;
}

/* Opens for writing what was looked at. A pipe that nobody reads makes the tool wait. Meanwhile a signal
 * may end it. */
static int open_existing(int looked_at)
{
	char path[32];
	sigset_t signals;
	sigset_t before;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", looked_at);
	sigemptyset(&signals);
	for (size_t i = 0; i < TOOL_ENDINGS; i++)
		sigaddset(&signals, tool_ending[i]);
	sigprocmask(SIG_UNBLOCK, &signals, &before);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return fd;
}

static int open_output(const char *path)
{
	struct stat status;
	int existing, fd = -1;

	if (output.folder >= 0) /* an output that was not finished */
		tool_output_finish(true);
	existing = find(path, &status);
	if (existing < 0 && (output.folder < 0 || errno != ENOENT))
		return -1;
	if (existing < 0)
		return open_temporary(NULL);
	if (S_ISREG(status.st_mode) && faccessat(output.folder, output.name, W_OK, AT_EACCESS) == 0)
		fd = open_temporary(&status);
	if (fd < 0)
		fd = open_existing(existing);
	close(existing);
	return fd;
}

int tool_output_create(const char *path)
{
	const int fd = open_output(path);
	const int error = errno;

	output.is_file = fd >= 0 && fstat(fd, &output.file) == 0 && S_ISREG(output.file.st_mode);
	if (fd < 0)
		forget_output();
	errno = error;
	return fd;
}

int tool_output_replace(const char *path)
{
	struct stat status;
	int existing, fd = -1;
	int error = EPERM;

	if (output.folder >= 0)
		tool_output_finish(true);
	existing = find(path, &status);
	if (existing < 0) {
		error = errno;
	} else if (S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1) {
		fd = open_temporary(&status);
		error = errno;
	}
	if (existing >= 0)
		close(existing);
	output.is_file = false;
	if (fd < 0)
		forget_output();
	errno = error;
	return fd;
}

/* Removes what was written: the temporary file, or the file itself if there is none. */
static void remove_output(void)
{
	struct stat now;

	if (output.temporary != NULL)
		unlinkat(output.folder, output.temporary, 0);
	else if (output.is_file &&
		 fstatat(output.folder, output.name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
		 now.st_dev == output.file.st_dev && now.st_ino == output.file.st_ino)
		unlinkat(output.folder, output.name, 0);
}

int tool_output_finish(bool failed)
{
	int error = 0;

	if (!failed && output.temporary != NULL &&
	    renameat(output.folder, output.temporary, output.folder, output.name) != 0)
		error = errno;
	if (failed || error != 0)
		remove_output();
	forget_output();
	return error;
}
