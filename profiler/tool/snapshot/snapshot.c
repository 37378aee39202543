/* SPDX-License-Identifier: MIT
 *
 * incstack snapshot: reads its options, writes the snapshot, and reports on it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/names.h"
#include "tool/option.h"
#include "tool/profile/profile.h"
#include "tool/record/record.h"
#include "snapshot.h"

static const char help[] =
	"usage: incstack snapshot [OPTIONS] PID [NAME]\n"
	"\n"
	"Writes what the process PID, which `incstack heap` records, has recorded so far into\n"
	"the trace file NAME, with which of its memory is resident now, and prints the report\n"
	"of NAME. The process goes on meanwhile, and its recording, too.\n"
	"The default NAME is incstack.PID.N.heap, with the first N that is free.\n"
	"\n"
	"  -q, --quiet           print no report\n"
	"      --full            print more of each section of the report\n"
	"  -h, --help            this text\n"
	"\n"
	"`incstack compare BEFORE AFTER` tells what grew between two snapshots.\n"
	"The exit status is 0; 1 if NAME cannot be written; 2 for wrong options; 126 if the "
	"process\n"
	"is not recorded or may not be looked at, 127 if it does not exist.\n"
	"\n"
	"Example: incstack snapshot 1234 before.heap\n";

struct options {
	bool is_quiet, is_full;
	pid_t pid;
	char *name;
};

static int refuse(const char *message)
{
	fprintf(stderr, "incstack: %s; see incstack snapshot --help\n", message);
	return TOOL_STATUS_USAGE;
}

static char *free_name(pid_t pid)
{
	char *name = NULL;

	for (unsigned i = 1; asprintf(&name, "incstack.%d.%u.heap", (int)pid, i) > 0; i++) {
		if (access(name, F_OK) != 0)
			return name;
		free(name);
	}
	return NULL;
}

static int take_arguments(int argc, char **argv, struct options *options)
{
	char *end = NULL;
	long pid;

	if (argc < 1 || argc > 2)
		return refuse("snapshot takes a process id, and a name");
	errno = 0;
	pid = strtol(argv[0], &end, 10);
	if (errno != 0 || end == argv[0] || *end != '\0' || pid <= 0 || pid > INT_MAX)
		return refuse("the first argument of snapshot is a process id");
	options->pid = (pid_t)pid;
	options->name = argc > 1 ? strdup(argv[1]) : free_name(options->pid);
	return options->name != NULL ? 0 : refuse("out of memory");
}

/* Whether both are one file. */
static bool is_same(const char *a, const char *b)
{
	struct stat left;
	struct stat right;

	return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
	       left.st_ino == right.st_ino;
}

static int write_snapshot(const struct options *options)
{
	struct tool_snapshot snapshot;
	int status = tool_snapshot_look(&snapshot, options->pid);

	if (status == 0 && is_same(options->name, snapshot.file)) {
		fprintf(stderr, "incstack: %s is the trace file itself; choose another name\n",
			tool_name(options->name));
		status = TOOL_STATUS_USAGE;
	}
	if (status == 0)
		status = tool_snapshot_write(&snapshot, options->name);
	tool_snapshot_free(&snapshot);
	return status;
}

static int report(const struct options *options)
{
	char command[] = "report";
	char full[] = "--full";
	char *arguments[] = {command, options->name, options->is_full ? full : NULL, NULL};

	fprintf(stderr, "incstack: the snapshot is %s\n", tool_name(options->name));
	if (options->is_quiet)
		return 0;
	optind = 0; /* options are read again */
	return tool_report(options->is_full ? 3 : 2, arguments);
}

static int run(int argc, char **argv, struct options *options)
{
	int status = take_arguments(argc, argv, options);

	if (status == 0)
		status = write_snapshot(options);
	if (status == 0)
		status = report(options);
	free(options->name);
	return status;
}

int tool_snapshot(int argc, char **argv)
{
	static const struct option names[] = {{"quiet", no_argument, NULL, 'q'},
					      {"full", no_argument, NULL, 'F'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	struct options options = {.name = NULL};
	int option;

	while ((option = tool_option_next(argc, argv, ":qh", names)) != -1) {
		switch (option) {
		case 'q':
			options.is_quiet = true;
			break;
		case 'F':
			options.is_full = true;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fprintf(stderr, "incstack: see incstack snapshot --help\n");
			return TOOL_STATUS_USAGE;
		}
	}
	return run(argc - optind, argv + optind, &options);
}
