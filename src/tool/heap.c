/* SPDX-License-Identifier: MIT
 *
 * incstack heap: reads the options, runs the program, and reports.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* asprintf */
#endif
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "heapfile/spool_format.h"
#include "heap.h"

static const char help[] =
	"usage: incstack heap [OPTIONS] [--] PROGRAM [ARGS]\n"
	"\n"
	"Runs PROGRAM and records where it allocates and frees memory: a stack trace at\n"
	"every malloc, calloc, realloc, aligned_alloc, operator new, on every thread.\n"
	"When PROGRAM has ended, prints the hottest calling contexts on stderr, and writes\n"
	"FILE.html (a flame graph for a browser) and FILE.folded (one line per context).\n"
	"\n"
	"  -o, --output FILE     the trace file (default: incstack.PID.heap)\n"
	"  --interval BYTES      take one sample per BYTES allocated on average, so that totals\n"
	"                        are estimates; suffixes k and M are allowed (default: 1,\n"
	"                        every allocation)\n"
	"  --mode MODE           patch (default): intercepts returns, fastest\n"
	"                        validate: writes nothing to the program's stacks\n"
	"                        full: walks the whole stack each time, for comparison\n"
	"  --crosscheck[=WALKER] compare each trace with a full walk; WALKER is\n"
	"                        libunwind (default): very slow\n"
	"                        own: the recorder's own walk; every 997th trace of a thread\n"
	"                        is compared with libunwind instead\n"
	"  --follow-children     also record child processes, each in FILE.PID.N\n"
	"  -h, --help            this text\n"
	"\n"
	"If the process executes other programs, FILE belongs to the last one; the files of\n"
	"those before it are FILE.PID.N. `incstack report FILE` repeats the reports.\n"
	"\n"
	"The last line on stderr has the sums over all of them, for other programs:\n"
	"  incstack: traces=N crosschecked=N mismatches=N lost=N truncated=N returns=N\n"
	"            stale=N mode=M depth_mean=X popped_mean=X      (on one line)\n"
	"The exit status is that of PROGRAM; 128 + N if signal N ended it; 126 or 127 if it\n"
	"could not be run; 2 for wrong options.\n"
	"\n"
	"Example: incstack heap -o /tmp/py -- python3 script.py\n";

/* Returns the absolute path, because the program may change its directory before the recorder
 * opens the file. */
static char *absolute(const char *file)
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
		length = asprintf(&path, "%s/incstack.%d.heap", directory, (int)getpid());
	free(directory);
	return length < 0 ? NULL : path;
}

/* Refuses a limit on file sizes under which the program could not begin the file. */
static int check_limit(const char *file)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur >= INCSTACK__TRACE_START)
		return 0;
	fprintf(stderr,
		"incstack: cannot write %s: the limit on file sizes (ulimit -f) is %llu bytes, and "
		"a trace file begins with %u; raise the limit\n",
		file, (unsigned long long)limit.rlim_cur, (unsigned)INCSTACK__TRACE_START);
	return TOOL_STATUS_CANNOT_RUN;
}

/* Creates the file, so that an error can be reported before the program runs. Something that is no
 * regular file (/dev/full, a pipe) is never replaced. */
static int prepare_file(struct tool_heap_options *options, const char *file)
{
	struct stat status;
	char *spool;
	int fd;

	options->file = absolute(file);
	if (options->file == NULL) {
		fprintf(stderr, "incstack: the current directory is gone; give -o a full path\n");
		return TOOL_STATUS_CANNOT_RUN;
	}
	if (stat(options->file, &status) == 0 && !S_ISREG(status.st_mode)) {
		fprintf(stderr, "incstack: %s is not a regular file; choose another with -o\n",
			options->file);
		return TOOL_STATUS_CANNOT_RUN;
	}
	if (check_limit(options->file) != 0 || tool_heap_lock(options->file) != 0)
		return TOOL_STATUS_CANNOT_RUN;
	fd = open(options->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		fprintf(stderr, "incstack: cannot write %s: %s; choose another file with -o\n",
			options->file, strerror(errno));
		return TOOL_STATUS_CANNOT_RUN;
	}
	close(fd);
	unlink(options->file); /* another process may still read the old file */
	if (asprintf(&spool, "%s" INCSTACK__SPOOL_SUFFIX, options->file) >= 0) {
		unlink(spool);
		free(spool);
	}
	return 0;
}

static int record(const struct tool_heap_options *options)
{
	struct timespec start;
	int status;
	int failed;

	clock_gettime(CLOCK_REALTIME_COARSE, &start); /* the clock that the recorder uses */
	status = tool_heap_run(options);
	failed = tool_heap_report(options->file,
				  (uint64_t)start.tv_sec * 1000000000u + (uint64_t)start.tv_nsec);
	return status == 0 && failed ? TOOL_STATUS_CANNOT_RUN : status;
}

/* Reads a number of bytes above 0, with an optional k or M. Returns 0 for anything else. */
static unsigned long long bytes_of(const char *text)
{
	char *end = NULL;
	unsigned long long bytes;
	int shift = 0;

	errno = 0;
	bytes = strtoull(text, &end, 10);
	if (*end == 'k' || *end == 'K')
		shift = 10;
	else if (*end == 'm' || *end == 'M')
		shift = 20;
	if (errno != 0 || text[0] < '0' || text[0] > '9' || end[shift != 0] != 0 ||
	    bytes > (uint64_t)INT64_MAX >> shift)
		return 0;
	return bytes << shift;
}

static int check_options(const struct tool_heap_options *options)
{
	if (options->interval == 0) {
		fprintf(stderr, "incstack: --interval takes a number of bytes above 0, for example "
				"4096 or 64k\n");
		return TOOL_STATUS_USAGE;
	}
	if (strcmp(options->mode, "patch") != 0 && strcmp(options->mode, "validate") != 0 &&
	    strcmp(options->mode, "full") != 0) {
		fprintf(stderr, "incstack: --mode takes patch, validate or full, not '%s'\n",
			options->mode);
		return TOOL_STATUS_USAGE;
	}
	if (strcmp(options->crosscheck, "no") != 0 && strcmp(options->crosscheck, "own") != 0 &&
	    strcmp(options->crosscheck, "libunwind") != 0) {
		fprintf(stderr, "incstack: --crosscheck takes libunwind or own, not '%s'\n",
			options->crosscheck);
		return TOOL_STATUS_USAGE;
	}
	if (options->program[0] != NULL)
		return 0;
	fprintf(stderr, "incstack: no program given: incstack heap -- PROGRAM [ARGS]\n");
	return TOOL_STATUS_USAGE;
}

int tool_heap(int argc, char **argv)
{
	static const struct option names[] = {{"output", required_argument, NULL, 'o'},
					      {"interval", required_argument, NULL, 'i'},
					      {"mode", required_argument, NULL, 'm'},
					      {"crosscheck", optional_argument, NULL, 'c'},
					      {"follow-children", no_argument, NULL, 'f'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	struct tool_heap_options options = {.interval = 1, .mode = "patch", .crosscheck = "no"};
	const char *file = NULL;
	int option;
	int status;

	argv[0] = (char[]){"incstack heap"};
	while ((option = getopt_long(argc, argv, "+o:h", names, NULL)) != -1) {
		switch (option) {
		case 'o':
			file = optarg;
			break;
		case 'i':
			options.interval = bytes_of(optarg);
			break;
		case 'm':
			options.mode = optarg;
			break;
		case 'c':
			options.crosscheck = optarg != NULL ? optarg : "libunwind";
			break;
		case 'f':
			options.follow = 1;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fprintf(stderr, "incstack: see incstack heap --help\n");
			return TOOL_STATUS_USAGE;
		}
	}
	options.program = argv + optind;
	status = check_options(&options);
	if (status == 0)
		status = tool_heap_check_program(options.program[0]);
	if (status == 0)
		status = prepare_file(&options, file);
	if (status == 0)
		status = record(&options);
	free(options.file);
	return status;
}
