/* SPDX-License-Identifier: MIT
 *
 * Takes and checks the options of the commands that record a program, prepares the trace file, runs
 * the program, and reports.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracefile/spool_format.h"
#include "tool/foreign.h"
#include "tool/names.h"
#include "record.h"

/* Returns the absolute path, because the program may change its directory before the recorder
 * opens the file. */
static char *absolute(const char *file, const char *kind)
{
	char *directory = NULL;
	char *path = NULL;
	int length;

	if (file != NULL && file[0] == '/')
		return strdup(file);
	directory = getcwd(NULL, 0);
	if (directory == NULL)
		return NULL;
	if (file != NULL)
		length = asprintf(&path, "%s/%s", directory, file);
	else
		length = asprintf(&path, "%s/incstack.%d.%s", directory, (int)getpid(), kind);
	free(directory);
	return length < 0 ? NULL : path;
}

/* Refuses a limit on file sizes under which the program could not begin the file. */
static int check_limit(const char *file)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur >= INCSTACK__TRACEFILE_START)
		return 0;
	fprintf(stderr,
		"incstack: cannot write %s: the limit on file sizes (ulimit -f) is %llu bytes, and "
		"a trace file begins with %u; raise the limit\n",
		tool_name(file), (unsigned long long)limit.rlim_cur,
		(unsigned)INCSTACK__TRACEFILE_START);
	return TOOL_STATUS_CANNOT_RUN;
}

/* Returns why the file must not be replaced; null if it is no file yet, is empty, or begins with `wanted`. */
static const char *reason_to_keep(const char *file, uint64_t wanted, const char *otherwise)
{
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK};
	struct stat status;
	uint64_t magic = 0;
	const char *why;
	int fd;

	if (lstat(file, &status) != 0)
		return NULL;
	fd = tool_foreign_open(file, &terms, &status, &why);
	if (fd < 0)
		return why;
	why = status.st_size > 0 &&
			      (read(fd, &magic, sizeof(magic)) != sizeof(magic) || magic != wanted)
		      ? otherwise
		      : NULL;
	close(fd);
	return why;
}

static int refuse_existing(const char *file, const char *reason)
{
	if (reason == NULL)
		return 0;
	fprintf(stderr, "incstack: %s: %s; remove it, or choose another file with -o\n",
		tool_name(file), reason);
	return TOOL_STATUS_CANNOT_RUN;
}

/* Both files are replaced: the trace file, and the spool that a killed run may have left. */
static int check_existing(const char *file, const char *spool)
{
	const int status = refuse_existing(file, reason_to_keep(file, INCSTACK__TRACEFILE_MAGIC,
								"exists and is no trace file"));

	return status != 0 ? status
			   : refuse_existing(spool, reason_to_keep(spool, INCSTACK__SPOOL_MAGIC,
								   "exists and is no live trace"));
}

/* The file is created, so that an error can be reported before the program runs. Something that is no
 * regular file (/dev/full, a pipe) is never replaced. */
static int renew(const char *file, const char *spool)
{
	const int fd = open(
		file, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);

	if (fd < 0) {
		fprintf(stderr, "incstack: cannot write %s: %s; choose another file with -o\n",
			tool_name(file), strerror(errno));
		return TOOL_STATUS_CANNOT_RUN;
	}
	close(fd);
	unlink(file); /* another process may still read the old file */
	unlink(spool);
	return 0;
}

int tool_record_prepare(struct tool_record_options *options)
{
	char *spool = NULL;
	int status = TOOL_STATUS_CANNOT_RUN;

	options->file = absolute(options->output, options->command);
	if (options->file == NULL) {
		fprintf(stderr, "incstack: the current directory is gone; give -o a full path\n");
		return TOOL_STATUS_CANNOT_RUN;
	}
	if (asprintf(&spool, "%s" INCSTACK__SPOOL_SUFFIX, options->file) < 0)
		return TOOL_STATUS_CANNOT_RUN;
	if (check_existing(options->file, spool) == 0 && check_limit(options->file) == 0 &&
	    tool_record_lock(options->file) == 0)
		status = renew(options->file, spool);
	free(spool);
	return status;
}

static int record(const struct tool_record_options *options)
{
	/* The clock that the recorder uses. */
	const uint64_t start = tool_record_now(CLOCK_REALTIME_COARSE);
	struct tool_record_end end = {0};
	const int status = tool_record_run(options, &end);
	const int failed = tool_record_report(options, start, &end);

	return status == 0 && failed ? TOOL_STATUS_CANNOT_RUN : status;
}

int tool_record_take_option(struct tool_record_options *options, int option, const char *argument)
{
	switch (option) {
	case 'o':
		options->output = argument;
		return 1;
	case 'm':
		options->mode = argument;
		return 1;
	case 'c':
		options->crosscheck = argument != NULL ? argument : "libunwind";
		return 1;
	case 'f':
		options->follow = 1;
		return 1;
	case 't':
		options->by_thread = 1;
		return 1;
	case 'L':
		options->folded = true;
		return 1;
	case 'R':
		options->resolves = true;
		return 1;
	case 'K':
		return tool_texts_take(&options->filter.skip, "--skip", argument) == 0;
	case 'O':
		return tool_texts_take(&options->filter.focus, "--focus", argument) == 0;
	case 'E':
		return tool_texts_take(&options->filter.files, "--suppressions", argument) == 0;
	case 'A':
		options->filter.shows_allocators = true;
		return 1;
	case 'p':
		options->pid = argument;
		return 1;
	case 'd':
		options->duration = argument;
		return 1;
	default:
		return 0;
	}
}

static void set_defaults(struct tool_record_options *options)
{
	if (options->mode == NULL)
		options->mode = "patch";
	if (options->crosscheck == NULL)
		options->crosscheck = "no";
}

static int check(const struct tool_record_options *options)
{
	if (strcmp(options->mode, "patch") != 0 && strcmp(options->mode, "validate") != 0 &&
	    strcmp(options->mode, "full") != 0) {
		fprintf(stderr, "incstack: --mode takes patch, validate or full, not '%s'\n",
			tool_name(options->mode));
		return TOOL_STATUS_USAGE;
	}
	if (strcmp(options->crosscheck, "no") != 0 && strcmp(options->crosscheck, "own") != 0 &&
	    strcmp(options->crosscheck, "libunwind") != 0) {
		fprintf(stderr, "incstack: --crosscheck takes libunwind or own, not '%s'\n",
			tool_name(options->crosscheck));
		return TOOL_STATUS_USAGE;
	}
	if (options->program[0] != NULL)
		return 0;
	fprintf(stderr, "incstack: no program given: incstack %s -- PROGRAM [ARGS]\n",
		options->command);
	return TOOL_STATUS_USAGE;
}

int tool_record(struct tool_record_options *options)
{
	int status;

	set_defaults(options);
	status = check(options);
	if (status == 0)
		status = tool_record_check_program(options->program[0]);
	if (status == 0)
		status = tool_record_prepare(options);
	if (status == 0)
		status = record(options);
	free(options->file);
	return status;
}
