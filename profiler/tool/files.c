/* SPDX-License-Identifier: MIT
 *
 * Runs the work of a command in the jail, and asks the broker for files on its behalf.
 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracefile/packed_format.h"
#include "names.h"
#include "output.h"
#include "package.h"
#include "profile_io.h"
#include "progress.h"
#include "serve.h"

/* What the work may use. The manual tells the numbers. */
#define MEMORY_LEAST (4ull << 30)
#define MEMORY_FOR_A_BYTE 32ull
#define SECONDS_LEAST 600ull
#define SECONDS_FOR_A_MIB 1ull

struct run {
	const struct tool_files *files;
	int *pipes;     /* for each input: its descriptor if it is no regular file, else -1 */
	uint64_t bytes; /* of all inputs */
	int (*work)(void *context);
	void *context;
};

/* In the worker. */
static struct {
	const struct tool_jail *jail;
	const struct run *run;
} worker;

/* ---- run ------------------------------------------------------------------------------------ */

/* Returns what a file counts for the limits. A packed trace file becomes much larger in memory. */
static uint64_t weight_of(const char *path, uint64_t size)
{
	enum { PACKED = 16 };
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct {
		uint64_t magic;
		uint32_t version;
	} head = {0};
	const bool is_packed = fd >= 0 && pread(fd, &head, sizeof(head), 0) > 0 &&
			       head.magic == INCSTACK__TRACEFILE_MAGIC &&
			       (head.version & INCSTACK__TRACEFILE_PACKED) != 0;

	if (fd >= 0)
		close(fd);
	return is_packed ? PACKED * size : size;
}

/* A pipe is opened before there is a broker, because opening it may take long. Errors are told when the
 * work opens the file. */
static void look_at_input(struct run *run, size_t i)
{
	const char *path = run->files->inputs[i];
	struct stat status;

	run->pipes[i] = -1;
	if (strcmp(path, "-") == 0)
		run->pipes[i] = STDIN_FILENO;
	else if (stat(path, &status) == 0 && S_ISREG(status.st_mode))
		run->bytes += weight_of(path, (uint64_t)status.st_size);
	else if (run->files->takes_pipes || incstack_profile_format_of(path))
		run->pipes[i] = open(path, O_RDONLY | O_CLOEXEC);
}

static int run_in_jail(const struct tool_jail *jail, void *context)
{
	const struct run *run = context;

	worker.jail = jail;
	worker.run = run;
	return run->work(run->context);
}

static int run_files(struct run *run)
{
	const struct tool_files *files = run->files;
	char *what = NULL;
	struct tool_jail jail = {
		.rows = tool_serve_rows,
		.row_count = TOOL_SERVE_ROWS,
		.context = (void *)(uintptr_t)files,
		.limits = {.memory = MEMORY_LEAST + MEMORY_FOR_A_BYTE * run->bytes,
			   .seconds = SECONDS_LEAST + SECONDS_FOR_A_MIB * (run->bytes >> 20),
			   .keep = run->pipes,
			   .keep_count = files->input_count},
	};
	int status;

	if (asprintf(&what, "the reader of %s",
		     files->input_count == 1 ? tool_name(files->inputs[0]) : "the files") < 0)
		return TOOL_FAILED;
	jail.what = what;
	status = tool_jail_run(&jail, run_in_jail, run);
	tool_output_abandon();
	free(what);
	return status;
}

int tool_files_run(const struct tool_files *files, int (*work)(void *context), void *context)
{
	struct run run = {.files = files, .work = work, .context = context};
	int status;

	run.pipes = calloc(files->input_count, sizeof(*run.pipes));
	if (run.pipes == NULL)
		return TOOL_FAILED;
	for (size_t i = 0; i < files->input_count; i++)
		look_at_input(&run, i);
	status = run_files(&run);
	for (size_t i = 0; i < files->input_count; i++)
		if (run.pipes[i] > STDERR_FILENO)
			close(run.pipes[i]);
	free(run.pipes);
	return status;
}

/* ---- the work asks --------------------------------------------------------------------------- */

static int ask(const struct tool_jail_request *request, struct tool_jail_answer *answer, int *fd)
{
	const int error = tool_jail_ask(worker.jail, request, answer, NULL, 0, fd);

	errno = error;
	return error == 0 ? 0 : -1;
}

static int ask_path(enum tool_serve_kind kind, const char *path, uint64_t number, int *fd)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer;

	if (tool_jail_request(&request, kind, path) != 0) {
		errno = ENAMETOOLONG;
		return -1;
	}
	request.numbers[0] = number;
	return ask(&request, &answer, fd);
}

static int open_path(enum tool_serve_kind kind, const char *path)
{
	int fd = -1;

	return ask_path(kind, path, 0, &fd) == 0 ? fd : -1;
}

int tool_files_input(const char *path)
{
	const struct tool_files *files = worker.run->files;

	for (size_t i = 0; i < files->input_count; i++)
		if (worker.run->pipes[i] >= 0 && strcmp(files->inputs[i], path) == 0)
			return dup(worker.run->pipes[i]);
	return open_path(TOOL_SERVE_INPUT, path);
}

int tool_files_spool(const char *path)
{
	return open_path(TOOL_SERVE_SPOOL, path);
}

int tool_files_replace(const char *path)
{
	return open_path(TOOL_SERVE_REPLACE, path);
}

int tool_files_replaced(const char *path, bool failed)
{
	return ask_path(TOOL_SERVE_REPLACED, path, failed, NULL);
}

void tool_files_spool_is_done(const char *path)
{
	(void)ask_path(TOOL_SERVE_SPOOL_DONE, path, 0, NULL);
}

int tool_files_module(const char *path)
{
	return open_path(TOOL_SERVE_MODULE, path);
}

int tool_files_debuginfod(const unsigned char *id, size_t length)
{
	enum { LENGTH_MOST = 64 };
	const char *urls = getenv("DEBUGINFOD_URLS");
	char text[2 * LENGTH_MOST + 1] = "";

	if (urls == NULL || urls[0] == 0 || length > LENGTH_MOST)
		return -1;
	for (size_t i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	tool_progress_phase("asking debuginfod");
	return open_path(TOOL_SERVE_DEBUGINFOD, text);
}

char *tool_files_package(const char *path)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer;
	char name[TOOL_PACKAGE_MOST];

	if (tool_jail_request(&request, TOOL_SERVE_PACKAGE, path) != 0 ||
	    tool_jail_ask(worker.jail, &request, &answer, name, sizeof(name), NULL) != 0 ||
	    answer.length == 0 || answer.length > sizeof(name))
		return NULL;
	return strndup(name, answer.length);
}

int tool_files_jit(enum tool_files_jit which, uint64_t pid, uint64_t since_ns, uint32_t owner)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer;
	int fd = -1;

	tool_jail_request(&request, TOOL_SERVE_JIT, "");
	request.numbers[0] = which;
	request.numbers[1] = pid;
	request.numbers[2] = since_ns;
	request.numbers[3] = owner;
	return ask(&request, &answer, &fd) == 0 ? fd : -1;
}

uint64_t tool_files_process_start(uint64_t pid)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer;

	tool_jail_request(&request, TOOL_SERVE_PROCESS, "");
	request.numbers[0] = pid;
	return ask(&request, &answer, NULL) == 0 ? answer.numbers[0] : 0;
}

int tool_files_scratch(void)
{
	return open_path(TOOL_SERVE_SCRATCH, "");
}

/* ---- outputs --------------------------------------------------------------------------------- */

FILE *tool_output_open(const char *path)
{
	FILE *stream = stdout;

	if (strcmp(path, "-") != 0) {
		const int fd = open_path(TOOL_SERVE_OUTPUT, path);

		stream = fd >= 0 ? fdopen(fd, "w") : NULL;
	}
	if (!stream)
		fprintf(stderr, "incstack: cannot write %s: %s\n", tool_name(path),
			strerror(errno));
	return stream;
}

int tool_output_close(const char *path, FILE *stream, int error)
{
	int failure = error ? errno : 0; /* of what the caller has written */

	if (stream == stdout ? fflush(stream) : fclose(stream)) {
		failure = failure ? failure : errno;
		error = error ? error : INCSTACK_EIO;
	}
	if (stream == stdout && error) { /* one message suffices */
		__fpurge(stream);
		clearerr(stream);
	}
	if (stream != stdout && ask_path(TOOL_SERVE_OUTPUT_DONE, path, error != 0, NULL) != 0) {
		failure = failure ? failure : errno;
		error = error ? error : INCSTACK_EIO;
	}
	if (error)
		fprintf(stderr, "incstack: cannot write %s: %s\n", tool_name(path),
			error == INCSTACK_EIO && failure ? strerror(failure)
							 : incstack_error_text(error));
	return error ? TOOL_FAILED : TOOL_DONE;
}
