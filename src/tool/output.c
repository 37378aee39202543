/* SPDX-License-Identifier: MIT
 *
 * Output files. A file gets its name when it is complete. Until then it is a temporary file beside
 * it, which is removed if writing fails or a signal ends the tool. Something that is no regular
 * file (a pipe, a terminal) is written directly. There is one output at a time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* asprintf */
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ending.h"
#include "output.h"

static struct {
	char *final;              /* the file's name, with no symbolic link in it */
	char *volatile temporary; /* null if there is none */
	bool is_file;
} output;

void tool_output_abandon(void)
{
	if (output.temporary != NULL)
		unlink(output.temporary);
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
	free(output.final);
	output.final = NULL;
}

/* Creates the temporary file beside the final one, with its permissions if that exists and is ours.
 * Returns -1 if that is impossible, for example because the directory cannot be written. */
static int open_temporary(const char *path, const struct stat *existing)
{
	char *temporary = NULL;
	int fd;

	output.final = existing != NULL ? realpath(path, NULL) : strdup(path);
	if (output.final == NULL ||
	    asprintf(&temporary, "%s.%d.part", output.final, (int)getpid()) < 0) {
		forget_output();
		return -1;
	}
	output.temporary = temporary;
	catch_signals();
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0 && existing != NULL && existing->st_uid == geteuid() &&
	    fchmod(fd, existing->st_mode & 07777) != 0) {
		close(fd);
		unlink(temporary);
		fd = -1;
	}
	if (fd < 0)
		forget_output();
	return fd;
}

/* Whether somebody else could have put it there to lead the tool to another file, or to make it wait. */
static bool is_trap(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && (S_ISLNK(status.st_mode) || S_ISFIFO(status.st_mode)) &&
	       status.st_uid != geteuid() && status.st_uid != 0;
}

/* A pipe that nobody reads makes the tool wait. Meanwhile a signal may end it. */
static int open_existing(const char *path)
{
	sigset_t signals;
	sigset_t before;
	int fd;

	sigemptyset(&signals);
	for (size_t i = 0; i < TOOL_ENDINGS; i++)
		sigaddset(&signals, tool_ending[i]);
	sigprocmask(SIG_UNBLOCK, &signals, &before);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return fd;
}

int tool_output_create(const char *path)
{
	struct stat status;
	int exists;
	int fd = -1;

	if (is_trap(path)) {
		errno = EPERM;
		return -1;
	}
	exists = stat(path, &status) == 0;
	if (!exists || (S_ISREG(status.st_mode) && access(path, W_OK) == 0))
		fd = open_temporary(path, exists ? &status : NULL);
	if (fd < 0)
		fd = open_existing(path);
	output.is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	return fd;
}

/* Removes what was written: the temporary file, or the file itself if there is none. */
static void remove_output(const char *path)
{
	if (output.temporary != NULL)
		unlink(output.temporary);
	else if (output.is_file)
		unlink(path);
}

int tool_output_finish(const char *path, bool failed)
{
	int error = 0;

	if (!failed && output.temporary != NULL && rename(output.temporary, output.final) != 0)
		error = errno;
	if (failed || error != 0)
		remove_output(path);
	forget_output();
	return error;
}
