/* SPDX-License-Identifier: MIT
 *
 * Says why nothing was recorded, as far as that can be known after the program has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracefile/format.h"
#include "tool/names.h"
#include "record.h"

/* Whether the program has left the empty file that stands for a recorder that could not be loaded. */
static int take_empty_file(const char *file)
{
	struct stat status;

	if (lstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != 0)
		return 0;
	unlink(file);
	return 1;
}

/* Makes a file as the recorder does. Returns 0 or the error. */
static int try_file(const char *file)
{
	const int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	int error;

	if (fd < 0)
		return errno == EEXIST ? 0 : errno;
	error = posix_fallocate(fd, 0, INCSTACK__TRACEFILE_START);
	close(fd);
	unlink(file);
	return error;
}

void tool_record_say_nothing(const char *file, const struct tool_record_end *end)
{
	int error;

	if (end != NULL && !end->started) /* it was said why */
		return;
	fprintf(stderr, "incstack: nothing was recorded into %s: ", tool_name(file));
	if (end == NULL)
		fprintf(stderr, "the process ended before its recording began\n");
	else if (take_empty_file(file))
		fprintf(stderr,
			"the recorder could not be loaded into the program; is there a "
			"limit on memory (ulimit -v), and is libincstack_recorder.so in the "
			"directory of libincstack_preload.so?\n");
	else if ((error = try_file(file)) != 0)
		fprintf(stderr, "the file cannot be made: %s; choose another with -o\n",
			strerror(error));
	else if (WIFSIGNALED(end->status))
		fprintf(stderr,
			"signal %d (%s) ended the program before its recording began, in a "
			"constructor of a library or in the dynamic loader; does the program run "
			"without incstack?\n",
			WTERMSIG(end->status), strsignal(WTERMSIG(end->status)));
	else
		fprintf(stderr, "the program ended without the recorder: LD_PRELOAD was taken from "
				"its environment, a constructor ended it, or it may not write the "
				"file\n");
}
