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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "names.h"
#include "profile_io.h"

static struct {
	char *final;              /* the file's name, with no symbolic link in it */
	char *volatile temporary; /* null if there is none */
} output;

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ};

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

	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		struct sigaction old;

		if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(ending[i], &action, NULL);
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

/* Creates the temporary file beside the final one, with its permissions if that exists. Returns -1
 * if that is impossible, for example because the directory cannot be written. */
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
	if (fd >= 0 && existing != NULL && fchmod(fd, existing->st_mode & 07777) != 0) {
		close(fd);
		unlink(temporary);
		fd = -1;
	}
	if (fd < 0)
		forget_output();
	return fd;
}

static FILE *open_stream(const char *path)
{
	struct stat status;
	const int exists = stat(path, &status) == 0;
	int fd = -1;

	if (exists && (!S_ISREG(status.st_mode) || access(path, W_OK) != 0))
		return fopen(path, "we");
	fd = open_temporary(path, exists ? &status : NULL);
	return fd < 0 ? fopen(path, "we") : fdopen(fd, "w");
}

FILE *tool_output_open(const char *path)
{
	FILE *stream = strcmp(path, "-") ? open_stream(path) : stdout;

	if (!stream)
		fprintf(stderr, "incstack: cannot write %s: %s\n", tool_name(path),
			strerror(errno));
	return stream;
}

/* Removes what was written: the temporary file, or the file itself if there is none. */
static void remove_output(const char *path, int is_file)
{
	if (output.temporary != NULL)
		unlink(output.temporary);
	else if (is_file)
		unlink(path);
}

int tool_output_close(const char *path, FILE *stream, int error)
{
	struct stat status;
	int file = stream != stdout && !fstat(fileno(stream), &status) && S_ISREG(status.st_mode);

	if (stream == stdout ? fflush(stream) : fclose(stream))
		error = error ? error : INCSTACK_EIO;
	if (!error && output.temporary != NULL && rename(output.temporary, output.final) != 0)
		error = INCSTACK_EIO;
	if (error) {
		fprintf(stderr, "incstack: cannot write %s: %s\n", tool_name(path),
			error == INCSTACK_EIO && errno ? strerror(errno)
						       : incstack_error_text(error));
		remove_output(path, file);
	}
	forget_output();
	return error ? TOOL_FAILED : TOOL_DONE;
}
