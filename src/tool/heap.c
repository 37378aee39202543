/* SPDX-License-Identifier: MIT
 *
 * incstack heap: runs a program with the recorder preloaded, then reports.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* asprintf */
#endif
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap.h"
#include "report.h"

#define PRELOAD "libincstack_preload.so"
#define STATUS_USAGE 2
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND 127

struct options {
	const char *file;
	const char *interval;
	const char *mode;
	int crosscheck;
	int follow;
	char **program;
};

static const char help[] =
	"usage: incstack heap [OPTIONS] -- PROGRAM [ARGS]\n"
	"\n"
	"Runs PROGRAM and records where it allocates and frees memory. Prints the hottest\n"
	"calling contexts and writes FILE.folded and FILE.html (a flame graph).\n"
	"\n"
	"  -o, --output FILE     the trace file (default: incstack.PID.heap)\n"
	"  --interval BYTES      one sample per BYTES allocated on average (default: 1, all)\n"
	"  --mode MODE           patch (default), validate (writes nothing into the stacks),\n"
	"                        full (walks the whole stack each time)\n"
	"  --crosscheck          compare each trace with a full walk; slow\n"
	"  --follow-children     record child processes too, in FILE.PID\n"
	"  -h, --help            this text\n"
	"\n"
	"The exit status is that of PROGRAM; 128 + N where signal N ended it.\n";

/* ---- what is checked before ------------------------------------------------------ */

static int find_in_path(const char *program, char path[PATH_MAX])
{
	const char *at = getenv("PATH");

	if (strchr(program, '/') != NULL || at == NULL) {
		snprintf(path, PATH_MAX, "%s", program);
		return access(path, F_OK) == 0;
	}
	for (; at != NULL; at = strchr(at, ':') != NULL ? strchr(at, ':') + 1 : NULL) {
		const int length = (int)strcspn(at, ":");
		struct stat status;

		snprintf(path, PATH_MAX, "%.*s/%s", length, length > 0 ? at : ".", program);
		if (access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode))
			return 1;
	}
	return 0;
}

/* Whether the dynamic loader runs it, without which nothing can be preloaded. A
 * script is run by an interpreter that is checked when it starts: yes. */
static int is_dynamic(int fd)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return 1;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
		return 0;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		const off_t at = (off_t)(header.e_phoff + i * sizeof(segment));

		if (pread(fd, &segment, sizeof(segment), at) == (ssize_t)sizeof(segment) &&
		    segment.p_type == PT_INTERP)
			return 1;
	}
	return 0;
}

static const char *refuse_reason(const char *path)
{
	struct stat status;
	const char *reason = NULL;
	int fd;

	if (stat(path, &status) != 0)
		return "it cannot be read";
	if (!S_ISREG(status.st_mode) || access(path, X_OK) != 0)
		return "it is not an executable file; see chmod +x";
	if (status.st_mode & (S_ISUID | S_ISGID))
		return "it is set-uid or set-gid, and the loader preloads nothing into such; "
		       "profile a copy without that bit";
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL; /* executable but unreadable: try */
	if (!is_dynamic(fd))
		reason = "it is static or not for x86-64; link it dynamically";
	close(fd);
	return reason;
}

static int check_program(const char *program)
{
	char path[PATH_MAX];
	const char *reason;

	if (!find_in_path(program, path)) {
		fprintf(stderr, "incstack: %s: no such program; give its path\n", program);
		return STATUS_NOT_FOUND;
	}
	reason = refuse_reason(path);
	if (reason == NULL)
		return 0;
	fprintf(stderr, "incstack: cannot profile %s: %s\n", path, reason);
	return STATUS_CANNOT_RUN;
}

/* In our own directory or in ../lib. */
static int find_preload(char path[PATH_MAX])
{
	static const char *const places[] = {"/" PRELOAD, "/../lib/" PRELOAD};
	char self[PATH_MAX - 64];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (length > 0) {
		self[length] = 0;
		slash = strrchr(self, '/');
		if (slash != NULL)
			*slash = 0;
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			snprintf(path, PATH_MAX, "%s%s", self, places[i]);
			if (access(path, R_OK) == 0)
				return 0;
		}
	}
	fprintf(stderr, "incstack: " PRELOAD " is neither beside incstack nor in ../lib; "
			"install it there\n");
	return STATUS_CANNOT_RUN;
}

/* ---- running ---------------------------------------------------------------------- */

static void set_environment(const struct options *options, const char *preload, const char *file)
{
	const char *others = getenv("LD_PRELOAD");
	char *text = NULL;

	if (asprintf(&text, "file=%s;interval=%s;mode=%s;crosscheck=%d;follow=%d", file,
		     options->interval, options->mode, options->crosscheck, options->follow) < 0)
		_exit(STATUS_CANNOT_RUN);
	setenv("INCSTACK_HEAP", text, 1);
	if (asprintf(&text, "%s%s%s", preload, others != NULL && *others ? ":" : "",
		     others != NULL ? others : "") < 0)
		_exit(STATUS_CANNOT_RUN);
	setenv("LD_PRELOAD", text, 1);
}

static void run_child(const struct options *options, const char *preload, const char *file)
{
	set_environment(options, preload, file);
	execvp(options->program[0], options->program);
	fprintf(stderr, "incstack: cannot run %s: %s\n", options->program[0], strerror(errno));
	_exit(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN);
}

static int wait_for(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_CANNOT_RUN;
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "incstack: the program was ended by signal %d (%s)\n", WTERMSIG(status),
		strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

/* Ctrl-C ends the program; we stay to report. */
static int run(const struct options *options, const char *preload, const char *file)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction old_int;
	struct sigaction old_quit;
	pid_t child;
	int status;

	sigaction(SIGINT, &ignore, &old_int);
	sigaction(SIGQUIT, &ignore, &old_quit);
	child = fork();
	if (child == 0) {
		sigaction(SIGINT, &old_int, NULL);
		sigaction(SIGQUIT, &old_quit, NULL);
		run_child(options, preload, file);
	}
	status = child < 0 ? STATUS_CANNOT_RUN : wait_for(child);
	if (child < 0)
		fprintf(stderr, "incstack: cannot start a process: %s\n", strerror(errno));
	return status;
}

static int record(const struct options *options)
{
	char preload[PATH_MAX];
	char file[PATH_MAX];
	int status = check_program(options->program[0]);

	if (status == 0)
		status = find_preload(preload);
	if (status != 0)
		return status;
	/* Absolute: the program may change its directory before the recorder opens it. */
	file[0] = 0;
	if ((options->file == NULL || options->file[0] != '/') &&
	    getcwd(file, sizeof(file) - 64) != NULL)
		strcat(file, "/");
	if (options->file == NULL)
		snprintf(file + strlen(file), 64, "incstack.%d.heap", (int)getpid());
	else if (strlen(file) + strlen(options->file) < sizeof(file))
		strcat(file, options->file);
	if (unlink(file) != 0 && errno != ENOENT) {
		fprintf(stderr, "incstack: cannot replace %s: %s; choose another file with -o\n",
			file, strerror(errno));
		return STATUS_CANNOT_RUN;
	}
	status = run(options, preload, file);
	if (access(file, F_OK) != 0)
		fprintf(stderr,
			"incstack: nothing was recorded: the recorder was not loaded or "
			"could not write %s\n",
			file);
	else if (tool_report_make(file, file, stderr, 1) != 0 && status == 0)
		status = STATUS_CANNOT_RUN;
	return status;
}

/* ---- options ---------------------------------------------------------------------- */

static int check_options(const struct options *options)
{
	char *end = NULL;

	errno = 0;
	if (strtoull(options->interval, &end, 10) == 0 || errno != 0 || *end != 0 ||
	    options->interval[0] == '-') {
		fprintf(stderr, "incstack: --interval takes a number of bytes above 0, not '%s'\n",
			options->interval);
		return STATUS_USAGE;
	}
	if (strcmp(options->mode, "patch") != 0 && strcmp(options->mode, "validate") != 0 &&
	    strcmp(options->mode, "full") != 0) {
		fprintf(stderr, "incstack: --mode is patch, validate or full, not '%s'\n",
			options->mode);
		return STATUS_USAGE;
	}
	if (options->file != NULL && strchr(options->file, ';') != NULL) {
		fprintf(stderr, "incstack: the name of the trace file may not contain ';'\n");
		return STATUS_USAGE;
	}
	if (options->program[0] != NULL)
		return 0;
	fprintf(stderr, "incstack: which program? incstack heap -- PROGRAM [ARGS]\n");
	return STATUS_USAGE;
}

int tool_heap(int argc, char **argv)
{
	static const struct option names[] = {{"output", required_argument, NULL, 'o'},
					      {"interval", required_argument, NULL, 'i'},
					      {"mode", required_argument, NULL, 'm'},
					      {"crosscheck", no_argument, NULL, 'c'},
					      {"follow-children", no_argument, NULL, 'f'},
					      {"help", no_argument, NULL, 'h'},
					      {NULL, 0, NULL, 0}};
	struct options options = {.interval = "1", .mode = "patch"};
	int option;
	int status;

	while ((option = getopt_long(argc, argv, "+o:h", names, NULL)) != -1) {
		switch (option) {
		case 'o':
			options.file = optarg;
			break;
		case 'i':
			options.interval = optarg;
			break;
		case 'm':
			options.mode = optarg;
			break;
		case 'c':
			options.crosscheck = 1;
			break;
		case 'f':
			options.follow = 1;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fprintf(stderr, "incstack: see incstack heap --help\n");
			return STATUS_USAGE;
		}
	}
	options.program = argv + optind;
	status = check_options(&options);
	return status != 0 ? status : record(&options);
}
