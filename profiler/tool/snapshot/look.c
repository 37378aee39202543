/* SPDX-License-Identifier: MIT
 *
 * Looks at a process that is being recorded. Nothing is done to the process: it is not stopped, and goes on meanwhile. So
 * the pages, the spool and the size of the trace file are taken at once, and how many allocations were made in between is
 * noted.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracefile/spool_format.h"
#include "tool/foreign.h"
#include "tool/names.h"
#include "tool/pages.h"
#include "tool/proc.h"
#include "tool/record/record.h"
#include "snapshot.h"

/* ---- the trace file ------------------------------------------------------------------------- */

/* Whether the file is the trace file of that process, in which a heap profile is recorded. */
static bool is_trace(const char *file, pid_t pid)
{
	static struct incstack__tracefile_header header;
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK};
	const char *why;
	const int fd = tool_foreign_open(file, &terms, NULL, &why);
	bool is = false;

	if (fd < 0)
		return false;
	is = pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	     header.magic == INCSTACK__TRACEFILE_MAGIC &&
	     header.version == INCSTACK__TRACEFILE_VERSION &&
	     header.kind == INCSTACK__TRACEFILE_OF_HEAP && header.pid == (uint64_t)pid;
	close(fd);
	return is;
}

/* The recorder has the counters of its trace file mapped: shared, and from behind the header on. */
static const char *mapped_counters(char *line)
{
	char *path = strchr(line, '/');
	char access[8] = "";
	unsigned long offset = 0;

	line[strcspn(line, "\n")] = '\0';
	if (path == NULL || sscanf(line, "%*x-%*x %7s %lx", access, &offset) != 2 ||
	    strcmp(access, "rw-s") != 0 || offset != INCSTACK__TRACEFILE_HEADER_BYTES)
		return NULL;
	return path;
}

static FILE *open_maps(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	return fopen(path, "re");
}

static char *find_trace(pid_t pid, FILE *maps)
{
	char *line = NULL;
	char *file = NULL;
	size_t room = 0;

	while (file == NULL && getline(&line, &room, maps) > 0) {
		const char *path = mapped_counters(line);

		if (path != NULL && is_trace(path, pid))
			file = strdup(path);
	}
	free(line);
	return file;
}

static int refuse(pid_t pid, int error)
{
	if (tool_proc_stat(pid, "stat", TOOL_PROC_START) == 0) {
		fprintf(stderr, "incstack: there is no process %d\n", (int)pid);
		return TOOL_STATUS_NOT_FOUND;
	}
	if (error != 0)
		fprintf(stderr,
			"incstack: cannot look at process %d: %s; do it as its user or as root\n",
			(int)pid, strerror(error));
	else
		fprintf(stderr,
			"incstack: process %d is not being recorded by incstack heap, or its trace "
			"file was removed; start it with: incstack heap -- PROGRAM, or use: "
			"incstack "
			"heap --resident -p %d\n",
			(int)pid, (int)pid);
	return TOOL_STATUS_CANNOT_RUN;
}

/* ---- what there is -------------------------------------------------------------------------- */

static int open_proc(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static struct incstack__moment_block *look_at_pages(struct tool_snapshot *snapshot)
{
	const struct tool_pages_files files = {
		.maps = open_proc(snapshot->pid, "maps"),
		.pagemap = open_proc(snapshot->pid, "pagemap"),
		.rollup = open_proc(snapshot->pid, "smaps_rollup"),
	};
	const int fds[] = {files.maps, files.pagemap, files.rollup};
	struct incstack__moment_block *block = tool_pages_look(&files, &snapshot->pages);

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return block;
}

/* Copies the bytes of the spool. A process without memory for it has none. */
static void copy_spool(struct tool_trace_seen *seen)
{
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK};
	struct stat status;
	char *name = NULL;
	const char *why;
	ssize_t got = 0;
	int fd = -1;

	if (asprintf(&name, "%s" INCSTACK__SPOOL_SUFFIX, seen->file) > 0)
		fd = tool_foreign_open(name, &terms, &status, &why);
	if (fd >= 0 && status.st_size > 0)
		seen->spool = aligned_alloc(64, ((size_t)status.st_size + 63) & ~(size_t)63);
	while (seen->spool != NULL && seen->spool_bytes < (size_t)status.st_size &&
	       (got = read(fd, seen->spool + seen->spool_bytes,
			   (size_t)status.st_size - seen->spool_bytes)) > 0)
		seen->spool_bytes += (size_t)got;
	if (fd >= 0)
		close(fd);
	free(name);
}

static void copy_counters(struct tool_trace_seen *seen)
{
	const struct tool_foreign terms = {.flags = TOOL_FOREIGN_NO_LINK};
	const char *why;
	const int fd = tool_foreign_open(seen->file, &terms, NULL, &why);

	seen->counters = malloc(INCSTACK__TRACEFILE_COUNTERS_BYTES);
	if (fd < 0 || seen->counters == NULL ||
	    pread(fd, seen->counters, INCSTACK__TRACEFILE_COUNTERS_BYTES,
		  INCSTACK__TRACEFILE_HEADER_BYTES) != INCSTACK__TRACEFILE_COUNTERS_BYTES) {
		free(seen->counters);
		seen->counters = NULL;
	}
	if (fd >= 0)
		close(fd);
}

/* The order matters: pages, counters, spool, file. What a thread writes to the file after its spool was copied is in both. */
static int see(struct tool_snapshot *snapshot)
{
	struct tool_trace_seen *seen = &snapshot->seen;
	const uint64_t begin = tool_record_now(CLOCK_MONOTONIC);
	uint64_t bytes;
	const uint64_t before = tool_record_samples(seen->file, &bytes);
	struct incstack__moment_block *block = look_at_pages(snapshot);

	if (block == NULL)
		return refuse(snapshot->pid, errno != 0 ? errno : ESRCH);
	copy_counters(seen);
	copy_spool(seen);
	block->head.calls = tool_record_samples(seen->file, &bytes) - before;
	block->head.took_ns = tool_record_now(CLOCK_MONOTONIC) - begin;
	seen->bytes = bytes;
	seen->moment = block;
	seen->moment_bytes = incstack__moment_seal(block);
	if (seen->spool == NULL)
		fprintf(stderr,
			"incstack: warning: what process %d has not written to its trace "
			"file yet is missing\n",
			(int)snapshot->pid);
	return 0;
}

int tool_snapshot_look(struct tool_snapshot *snapshot, pid_t pid)
{
	FILE *maps = open_maps(pid);
	const int error = errno;

	*snapshot = (struct tool_snapshot){.pid = pid};
	if (maps == NULL)
		return refuse(pid, error);
	snapshot->file = find_trace(pid, maps);
	fclose(maps);
	if (snapshot->file == NULL)
		return refuse(pid, 0);
	snapshot->seen.file = snapshot->file;
	return see(snapshot);
}

void tool_snapshot_free(struct tool_snapshot *snapshot)
{
	free(snapshot->file);
	free(snapshot->pages);
	free(snapshot->seen.counters);
	free(snapshot->seen.spool);
}
