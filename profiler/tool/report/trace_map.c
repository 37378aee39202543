/* SPDX-License-Identifier: MIT
 *
 * Trace files and their spools. A report reads both and changes neither, because the process may
 * still run. After `incstack heap` has seen a process end, it turns the two into one file, and packs the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <incstack/incstack.h>

#include "tracefile/packed.h"
#include "tracefile/packed_format.h"
#include "tracefile/spool_read.h"
#include "tool/files.h"
#include "tool/names.h"
#include "tool/profile_io.h"
#include "tool/progress.h"
#include "trace_map.h"

/* What a spool adds to a trace file. */
struct rest {
	unsigned char *blocks;
	size_t bytes;
	uint64_t pid;
	uint64_t process_start;
};

static int read_whole(int fd, unsigned char *to, size_t bytes)
{
	while (bytes > 0) {
		const ssize_t got = read(fd, to, bytes);

		if (got <= 0)
			return -1;
		to += got;
		bytes -= (size_t)got;
	}
	return 0;
}

/* Copies the spool into memory, because the file may still change. Returns null if there is no
 * spool. */
static unsigned char *read_spool(const char *file, size_t *size)
{
	const int fd = tool_files_spool(file);
	unsigned char *data = NULL;
	struct stat status;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && status.st_size > 0) {
		*size = (size_t)status.st_size;
		data = aligned_alloc(64, (*size + 63) & ~(size_t)63);
	}
	if (data != NULL && read_whole(fd, data, *size) != 0) {
		free(data);
		data = NULL;
	}
	close(fd);
	return data;
}

/* Makes the rest of a spool, whose content is destroyed. Returns other than 0 if there is nothing to add, or no memory
 * for it. */
static int recover(unsigned char *data, size_t size, const char *file,
		   const struct incstack__tracefile_header *header, struct rest *rest)
{
	const struct incstack__spool_header *spool =
		data != NULL ? incstack__spool_header(data, size, header) : NULL;
	int error = INCSTACK_EINVAL;

	*rest = (struct rest){0};
	if (spool != NULL) {
		rest->pid = spool->pid;
		rest->process_start = spool->process_start;
		error = incstack__spool_recover(data, size, header, &rest->blocks, &rest->bytes);
	}
	if (error == INCSTACK_ENOMEM)
		fprintf(stderr,
			"incstack: out of memory for what is in %s" INCSTACK__SPOOL_SUFFIX "\n",
			tool_name(file));
	return error;
}

/* Reads the spool of a file, and makes the rest of it. */
static int read_rest(const char *file, const struct incstack__tracefile_header *header,
		     struct rest *rest)
{
	size_t size = 0;
	unsigned char *data;
	int error;

	*rest = (struct rest){0};
	/* A packed file is whole. */
	if (header->version & INCSTACK__TRACEFILE_PACKED)
		return INCSTACK_EINVAL;
	data = read_spool(file, &size);
	error = recover(data, size, file, header, rest);
	free(data);
	return error;
}

/* ---- a file that becomes shorter ---------------------------------------------------------- */

/* The mapped file. A page of it that the file does not reach any more cannot be read. */
static struct {
	const char *name;
	uintptr_t low, high;
} mapped;

static void say(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		return;
}

static void on_missing_page(int number, siginfo_t *info, void *context)
{
	const uintptr_t at = (uintptr_t)info->si_addr;

	(void)context;
	if (at < mapped.low || at >= mapped.high) {
		signal(number, SIG_DFL); /* it comes again */
		return;
	}
	say("incstack: ");
	say(mapped.name);
	say(": the file became shorter while it was read\n");
	_exit(1); /* the broker removes what was written */
}

/* From here on, until it is mapped no more, the file is read through memory. Reading it by calls
 * would take another copy of it. */
static void watch(const char *name, const void *data, size_t size)
{
	const struct sigaction action = {.sa_sigaction = on_missing_page, .sa_flags = SA_SIGINFO};

	mapped.name = tool_name(name);
	mapped.low = (uintptr_t)data;
	mapped.high = (uintptr_t)data + size;
	sigaction(SIGBUS, &action, NULL);
}

/* ---- reading ---------------------------------------------------------------------------- */

static void *map_with_room(int fd, size_t size, size_t room)
{
	void *base;

	if (size + room == 0)
		return NULL;
	base = mmap(NULL, size + room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED || size == 0)
		return base;
	return mmap(base, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0);
}

static int read_header(int fd, struct incstack__tracefile_header *header)
{
	return pread(fd, header, sizeof(*header), 0) == (ssize_t)sizeof(*header) ? 0 : -1;
}

int tool_trace_map(const char *file, void **data, size_t *size, struct timespec *written)
{
	static struct incstack__tracefile_header header;
	const int fd = tool_files_input(file);
	struct stat status;
	struct rest rest = {0};
	int failed = fd < 0 || fstat(fd, &status) != 0;
	int error = errno;

	*data = NULL;
	if (!failed && read_header(fd, &header) == 0)
		read_rest(file, &header, &rest);
	/* A process that still runs may have written since its spool was read. What it has written then is in both, which a
	 * reader finds out, while an older size would leave a hole. */
	failed = failed || fstat(fd, &status) != 0;
	*size = failed ? 0 : (size_t)status.st_size;
	if (!failed) {
		*data = map_with_room(fd, *size, rest.bytes);
		failed = *data == MAP_FAILED;
		error = errno;
	}
	if (!failed) {
		*written = status.st_mtim;
		watch(file, *data, *size);
	}
	if (failed) {
		fprintf(stderr, "incstack: cannot read %s: %s\n", tool_name(file),
			error == EINVAL ? "it is not a regular file" : strerror(error));
	} else if (rest.bytes > 0) {
		const uint64_t end = incstack__tracefile_end(*data, *size);

		memcpy((unsigned char *)*data + end, rest.blocks, rest.bytes);
		*size = end + rest.bytes;
	}
	free(rest.blocks);
	if (fd >= 0)
		close(fd);
	return failed;
}

void tool_trace_unmap(void *data, size_t size)
{
	if (data != NULL)
		munmap(data, size);
}

/* ---- settling --------------------------------------------------------------------------- */

static int append(int fd, uint64_t end, const struct rest *rest)
{
	size_t done = 0;

	if (ftruncate(fd, (off_t)end) != 0)
		return -1;
	while (done < rest->bytes) {
		const ssize_t wrote =
			pwrite(fd, rest->blocks + done, rest->bytes - done, (off_t)(end + done));

		if (wrote <= 0)
			break;
		done += (size_t)wrote;
	}
	if (done != rest->bytes)
		(void)!ftruncate(fd,
				 (off_t)end); /* the caller reports that the file is not complete */
	return done == rest->bytes ? 0 : -1;
}

/* Finds the end of the blocks by reading the file. */
static uint64_t end_of(const char *file, int fd)
{
	struct stat status;
	uint64_t end = 0;
	void *data;

	if (fstat(fd, &status) != 0)
		return 0;
	data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return 0;
	watch(file, data, (size_t)status.st_size);
	end = incstack__tracefile_end(data, (uint64_t)status.st_size);
	munmap(data, (size_t)status.st_size);
	return end;
}

void tool_trace_settle(const char *file)
{
	static struct incstack__tracefile_header header;
	const int fd = tool_files_input(file);
	struct rest rest = {0};

	if (fd >= 0 && read_header(fd, &header) == 0 && read_rest(file, &header, &rest) == 0 &&
	    tool_files_process_start(rest.pid) != rest.process_start) {
		const uint64_t end = end_of(file, fd);

		if (end > 0 && append(fd, end, &rest) == 0)
			tool_files_spool_is_done(file);
	}
	free(rest.blocks);
	if (fd >= 0)
		close(fd);
}

/* ---- copying ---------------------------------------------------------------------------- */

/* Writes a trace file, packed if that makes it smaller. Returns 0, INCSTACK_E* or INCSTACK_EIO. */
static int write_packed(const void *data, size_t size, FILE *out)
{
	struct rest all = {.bytes = size};
	int error = incstack__tracefile_pack(data, size, out);

	if (error != INCSTACK_EINVAL && error != INCSTACK_ELIMIT)
		return error;
	all.blocks = (void *)(uintptr_t)data;
	error = fflush(out) != 0 || append(fileno(out), 0, &all) != 0;
	return error ? INCSTACK_EIO : 0;
}

/* Puts the parts behind each other: the whole blocks of the file, the rest, the moment. The process counts on, and what it
 * has counted since would seem to be lost. */
static size_t join(unsigned char *data, size_t size, const struct rest *rest,
		   const struct tool_trace_seen *seen)
{
	size_t end = incstack__tracefile_end(data, size);

	if (seen->counters != NULL && end >= INCSTACK__TRACEFILE_START)
		memcpy(data + INCSTACK__TRACEFILE_HEADER_BYTES, seen->counters,
		       INCSTACK__TRACEFILE_COUNTERS_BYTES);
	if (rest->bytes > 0)
		memcpy(data + end, rest->blocks, rest->bytes);
	end += rest->bytes;
	memcpy(data + end, seen->moment, seen->moment_bytes);
	return end + seen->moment_bytes;
}

int tool_trace_copy(const struct tool_trace_seen *seen, FILE *out)
{
	static struct incstack__tracefile_header header;
	const int fd = tool_files_input(seen->file);
	struct rest rest = {0};
	void *data = MAP_FAILED;
	int error = INCSTACK_EIO;

	if (fd >= 0 && read_header(fd, &header) == 0) {
		error = INCSTACK_ENOMEM;
		if (recover(seen->spool, seen->spool_bytes, seen->file, &header, &rest) !=
		    INCSTACK_ENOMEM)
			data = map_with_room(fd, seen->bytes, rest.bytes + seen->moment_bytes);
	}
	if (data != MAP_FAILED) {
		watch(seen->file, data, seen->bytes);
		error = write_packed(data, join(data, seen->bytes, &rest, seen), out);
		munmap(data, seen->bytes + rest.bytes + seen->moment_bytes);
	}
	free(rest.blocks);
	if (fd >= 0)
		close(fd);
	return error;
}

/* ---- packing ---------------------------------------------------------------------------- */

/* Returns the file as it is before it is packed, with the names behind its last block; null: no memory. */
static void *with_names(const struct incstack__tracefile_unpacked *raw,
			const struct tool_resolved *names, size_t *size)
{
	const uint64_t end = incstack__tracefile_end(raw->data, raw->size);
	unsigned char *all = malloc(end + names->bytes);

	if (all == NULL)
		return NULL;
	memcpy(all, raw->data, end);
	memcpy(all + end, names->block, names->bytes);
	*size = end + names->bytes;
	return all;
}

static int pack_names(const void *data, size_t size, const struct tool_resolved *names, FILE *out)
{
	struct incstack__tracefile_unpacked raw;
	int error = incstack__tracefile_unpack(data, size, &raw);
	void *all = error == 0 ? with_names(&raw, names, &size) : NULL;

	if (error == 0)
		error = all != NULL ? incstack__tracefile_pack(all, size, out) : INCSTACK_ENOMEM;
	free(all);
	free(raw.owned);
	return error;
}

/* Returns 0, INCSTACK_E* or, if writing fails, INCSTACK_EIO with its errno. */
static int pack(const char *file, const struct tool_resolved *names, FILE *out)
{
	void *data;
	size_t size;
	struct timespec written;
	int error = INCSTACK_EINVAL;

	if (tool_trace_map(file, &data, &size, &written) != 0)
		return INCSTACK_EINVAL;
	if (size > 0)
		error = names != NULL ? pack_names(data, size, names, out)
				      : incstack__tracefile_pack(data, size, out);
	tool_trace_unmap(data, size);
	return error;
}

/* Packs into a descriptor. */
static int pack_into(const char *file, const struct tool_resolved *names, int to)
{
	FILE *out = fdopen(to, "w");
	int error = out != NULL ? pack(file, names, out) : INCSTACK_ENOMEM;

	if (out != NULL && fclose(out) != 0 && error == 0)
		error = INCSTACK_EIO;
	return error;
}

bool tool_trace_pack(const char *file, const struct tool_resolved *names)
{
	const int to = tool_files_replace(file);
	const char *why = NULL;
	int error;

	if (to < 0)
		return false;
	tool_progress_phase("packing the trace file");
	tool_progress_start(file);
	error = pack_into(file, names, to);
	tool_progress_end();
	if (error == INCSTACK_EIO)
		why = strerror(errno);
	else if (error == INCSTACK_ENOMEM)
		why = incstack_error_text(error);
	if (tool_files_replaced(file, error != 0) != 0 && why == NULL)
		why = strerror(errno);
	if (why != NULL)
		fprintf(stderr,
			"incstack: %s stays as large as it is, because packing it failed: %s\n",
			tool_name(file), why);
	return error == 0 && why == NULL;
}

int tool_trace_name_copy(const char *file, const struct tool_resolved *names, const char *output)
{
	FILE *out = tool_output_open(output);

	return out != NULL ? tool_output_close(output, out, pack(file, names, out)) : 1;
}
