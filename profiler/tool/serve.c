/* SPDX-License-Identifier: MIT
 *
 * The broker of a command that reads what strangers wrote. It believes nothing that the worker says: it
 * opens only files that the command line names, ELF files for programs, which hold nothing secret, and
 * the files of perf.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tracefile/spool_format.h"
#include "debuginfod.h"
#include "foreign.h"
#include "output.h"
#include "package.h"
#include "proc.h"
#include "tool/report/jit_names.h"
#include "serve.h"

static bool is_listed(const char *const *paths, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(paths[i], path) == 0)
			return true;
	return false;
}

static bool is_input(const struct tool_files *files, const char *path)
{
	return is_listed(files->inputs, files->input_count, path);
}

/* Whether the tool may complete an input. */
static bool is_completed(const struct tool_files *files, const char *path)
{
	return files->completes &&
	       is_listed(files->inputs, files->input_count - files->given, path);
}

/* Opens a file that must be regular. EISDIR, or EINVAL: it is not. */
static int open_foreign(const char *path, const struct tool_foreign *terms, struct stat *status,
			struct tool_jail_served *served)
{
	struct stat found = {0};
	const char *why;

	errno = 0;
	status = status != NULL ? status : &found;
	served->fd = tool_foreign_open(path, terms, status, &why);
	if (served->fd >= 0)
		return 0;
	if (errno != 0)
		return errno;
	return S_ISDIR(status->st_mode) ? EISDIR : EINVAL;
}

/* ---- inputs ------------------------------------------------------------------------------- */

static int serve_input(void *context, const struct tool_jail_request *request,
		       struct tool_jail_served *served)
{
	const struct tool_files *files = context;
	const struct tool_foreign writing = {.flags = TOOL_FOREIGN_WRITE | TOOL_FOREIGN_NO_LINK};

	if (!is_input(files, request->text))
		return EACCES;
	if (is_completed(files, request->text) &&
	    open_foreign(request->text, &writing, NULL, served) == 0)
		return 0;
	return open_foreign(request->text, NULL, NULL, served);
}

static char *spool_of(const struct tool_files *files, const char *path)
{
	char *spool = NULL;

	if (!is_input(files, path) || asprintf(&spool, "%s" INCSTACK__SPOOL_SUFFIX, path) < 0)
		return NULL;
	return spool;
}

static int serve_spool(void *context, const struct tool_jail_request *request,
		       struct tool_jail_served *served)
{
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK};
	char *spool = spool_of(context, request->text);
	const int error = spool == NULL ? EACCES : open_foreign(spool, &terms, NULL, served);

	free(spool);
	return error;
}

static int serve_spool_done(void *context, const struct tool_jail_request *request,
			    struct tool_jail_served *served)
{
	const struct tool_files *files = context;
	char *spool = is_completed(files, request->text) ? spool_of(files, request->text) : NULL;
	const int error = spool == NULL ? EACCES : unlink(spool) != 0 ? errno : 0;

	(void)served;
	free(spool);
	return error;
}

static int serve_process(void *context, const struct tool_jail_request *request,
			 struct tool_jail_served *served)
{
	const uint64_t pid = request->numbers[0];

	(void)context;
	served->answer.numbers[0] =
		pid <= INT_MAX ? tool_proc_stat((pid_t)pid, "stat", TOOL_PROC_START) : 0;
	return 0;
}

/* ---- programs ------------------------------------------------------------------------------ */

/* The files that dwz makes are said to be relocatable. A core file is an ELF file, too, and holds the memory of a
 * process. */
static bool is_program(int fd)
{
	Elf64_Ehdr header;

	return pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	       memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
	       (header.e_type == ET_EXEC || header.e_type == ET_DYN || header.e_type == ET_REL);
}

static int serve_module(void *context, const struct tool_jail_request *request,
			struct tool_jail_served *served)
{
	int error = EACCES;

	(void)context;
	if (request->text[0] == '/')
		error = open_foreign(request->text, NULL, NULL, served);
	if (error != 0)
		return error;
	return is_program(served->fd) ? 0 : ENOEXEC; /* the jail closes it */
}

static int serve_debuginfod(void *context, const struct tool_jail_request *request,
			    struct tool_jail_served *served)
{
	(void)context;
	served->fd = tool_debuginfod_find(request->text);
	if (served->fd < 0)
		return ENOENT;
	return is_program(served->fd) ? 0 : ENOEXEC;
}

static int serve_package(void *context, const struct tool_jail_request *request,
			 struct tool_jail_served *served)
{
	char name[TOOL_PACKAGE_MOST];
	const size_t length = tool_package_find(request->text, name);

	(void)context;
	memcpy(served->bytes, name, length);
	served->answer.length = (uint32_t)length;
	return length > 0 ? 0 : ENOENT;
}

/* Anybody may write to /tmp. */
static int serve_jit(void *context, const struct tool_jail_request *request,
		     struct tool_jail_served *served)
{
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK | TOOL_FOREIGN_OWNED,
					   .owner = (uid_t)request->numbers[3],
					   .bytes_most = TOOL_JIT_FILE_MOST};
	const char *form = request->numbers[0] == TOOL_FILES_JIT_MAP ? "/tmp/perf-%" PRIu64 ".map"
								     : "jit-%" PRIu64 ".dump";
	struct stat status;
	const char *why;
	char path[64];

	(void)context;
	snprintf(path, sizeof(path), form, request->numbers[1]);
	served->fd = tool_foreign_open(path, &terms, &status, &why);
	if (served->fd < 0 && lstat(path, &status) == 0)
		fprintf(stderr, "incstack: the names in %s are not used: it %s\n", path, why);
	if (served->fd < 0)
		return EACCES;
	return (uint64_t)status.st_mtim.tv_sec >= request->numbers[2] / 1000000000u ? 0 : ESTALE;
}

/* ---- outputs ------------------------------------------------------------------------------- */

/* Not every file system has files without names. */
static int serve_scratch(void *context, const struct tool_jail_request *request,
			 struct tool_jail_served *served)
{
	char name[] = P_tmpdir "/incstack-XXXXXX";

	(void)context;
	(void)request;
	served->fd = open(P_tmpdir, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (served->fd >= 0)
		return 0;
	served->fd = mkostemp(name, O_CLOEXEC);
	if (served->fd >= 0)
		unlink(name);
	return served->fd < 0 ? errno : 0;
}

static int serve_output(void *context, const struct tool_jail_request *request,
			struct tool_jail_served *served)
{
	const struct tool_files *files = context;

	if (!is_listed(files->outputs, files->output_count, request->text))
		return EACCES;
	served->fd = tool_output_create(request->text);
	return served->fd < 0 ? errno : 0;
}

static int serve_output_done(void *context, const struct tool_jail_request *request,
			     struct tool_jail_served *served)
{
	const struct tool_files *files = context;

	(void)served;
	if (!is_listed(files->outputs, files->output_count, request->text))
		return EACCES;
	return tool_output_finish(request->numbers[0] != 0);
}

/* ---- an input that is replaced ---------------------------------------------------------------- */

/* Keeps the input from being written to; -1: there is none. */
static int lock = -1;

static void unlock(void)
{
	if (lock >= 0)
		close(lock);
	lock = -1;
}

/* A process that still writes the input holds its lock. What is in a spool is not in the input. */
static int lock_input(const struct tool_files *files, const char *path)
{
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK};
	const char *why;
	char *spool;
	bool is_whole;

	lock = tool_foreign_open(path, &terms, NULL, &why);
	if (lock < 0)
		return EACCES;
	if (flock(lock, LOCK_EX | LOCK_NB) != 0)
		return EBUSY;
	spool = spool_of(files, path);
	is_whole = spool != NULL && access(spool, F_OK) != 0;
	free(spool);
	return is_whole ? 0 : EBUSY;
}

static int serve_replace(void *context, const struct tool_jail_request *request,
			 struct tool_jail_served *served)
{
	const struct tool_files *files = context;
	int error;

	unlock();
	if (!is_completed(files, request->text))
		return EACCES;
	error = lock_input(files, request->text);
	if (error == 0) {
		served->fd = tool_output_replace(request->text);
		error = served->fd < 0 ? errno : 0;
	}
	if (error != 0)
		unlock();
	return error;
}

static int serve_replaced(void *context, const struct tool_jail_request *request,
			  struct tool_jail_served *served)
{
	int error = EACCES;

	(void)context;
	(void)served;
	if (lock >= 0)
		error = tool_output_finish(request->numbers[0] != 0);
	unlock();
	return error;
}

const struct tool_jail_row tool_serve_rows[TOOL_SERVE_ROWS] = {
	{TOOL_SERVE_INPUT, serve_input},
	{TOOL_SERVE_SPOOL, serve_spool},
	{TOOL_SERVE_SPOOL_DONE, serve_spool_done},
	{TOOL_SERVE_MODULE, serve_module},
	{TOOL_SERVE_DEBUGINFOD, serve_debuginfod},
	{TOOL_SERVE_PACKAGE, serve_package},
	{TOOL_SERVE_JIT, serve_jit},
	{TOOL_SERVE_PROCESS, serve_process},
	{TOOL_SERVE_SCRATCH, serve_scratch},
	{TOOL_SERVE_OUTPUT, serve_output},
	{TOOL_SERVE_OUTPUT_DONE, serve_output_done},
	{TOOL_SERVE_REPLACE, serve_replace},
	{TOOL_SERVE_REPLACED, serve_replaced},
};
