/* SPDX-License-Identifier: MIT
 *
 * The file of the spool: beside the trace file, mapped shared. It grows in steps. The disk space of a
 * step is allocated before anything is stored there, because a store would end the process if the
 * disk were full.
 */
#include <stdatomic.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "recorder/system/open.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"
#include "spool_file.h"

enum {
	LEAST_STEP = 1 << 20,
	GUARD_BYTES = 4096,
	UNIT_BYTES = 64 << 10,
	FILLED_FIRST = 6 * UNIT_BYTES, /* as much as the first thread needs at once */
	FILLED_AHEAD = 3 * UNIT_BYTES,
};

static struct {
	struct incstack__spool_header *header; /* null: there is no file */
	char path[4096 + 64];
	dev_t device;
	ino_t inode;
	unsigned char *next; /* the unused part of the newest segment */
	size_t left;
	unsigned char *filled; /* zeros were written to the file up to here */
} spool_file;

static const struct incstack__spool_segment *newest_segment(void)
{
	return &spool_file.header->segment[spool_file.header->segments - 1];
}

/* Whether the file may have that size. Beyond the limit the kernel would send a signal. */
static bool within_limit(uint64_t bytes)
{
	struct rlimit limit;

	return incstack__kernel_getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur;
}

/* Reserves addresses for a segment and a guard page before it, where a walk ends that runs past the base
 * of a stack below (D91). */
static unsigned char *reserve(size_t bytes)
{
	unsigned char *memory =
		incstack__kernel_mmap(NULL, GUARD_BYTES + bytes, PROT_NONE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory + GUARD_BYTES;
}

static void unmap(void *memory, size_t bytes)
{
	incstack__record_unmap((unsigned char *)memory - GUARD_BYTES, GUARD_BYTES + bytes);
}

/* Maps `bytes` more bytes of the file, from `offset` on. */
static void *map_more(int fd, uint64_t offset, size_t bytes)
{
	unsigned char *memory;

	if (!within_limit(offset + bytes) ||
	    incstack__kernel_fallocate(fd, (off_t)offset, (off_t)bytes) != 0)
		return NULL;
	memory = reserve(bytes);
	if (!memory)
		return NULL;
	if (incstack__kernel_mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
				  (off_t)offset) != MAP_FAILED) {
		/* Nothing else is in the file yet, so there is nothing to read ahead. */
		incstack__kernel_madvise(memory, bytes, MADV_RANDOM);
		return memory;
	}
	unmap(memory, bytes);
	return NULL;
}

/* Writes zeros to a part of the file that is empty anyway, so that the kernel does not read and prepare
 * each page when it is touched for the first time (D87). */
static void fill(int fd, uint64_t offset, size_t bytes)
{
	static const unsigned char zeros[4096];
	struct iovec unit[UNIT_BYTES / sizeof(zeros)];

	for (size_t i = 0; i < UNIT_BYTES / sizeof(zeros); i++)
		unit[i] = (struct iovec){(void *)(uintptr_t)zeros, sizeof(zeros)};
	for (size_t at = 0; at < bytes; at += UNIT_BYTES)
		if (incstack__kernel_pwritev(fd, unit, UNIT_BYTES / sizeof(zeros),
					     (off_t)(offset + at)) != UNIT_BYTES)
			return;
}

/* Adds a segment, which is counted only after it is described. */
static void add_segment(void *memory, uint64_t offset, size_t bytes)
{
	struct incstack__spool_header *header = spool_file.header;

	header->segment[header->segments] = (struct incstack__spool_segment){
		.address = (uintptr_t)memory, .bytes = bytes, .offset = offset};
	atomic_signal_fence(memory_order_seq_cst);
	header->segments++;
	spool_file.next = spool_file.filled = memory;
	spool_file.left = bytes;
}

/* Opens the file only to extend it or to fill it. So there is no permanent descriptor that the program could
 * close or replace. */
static int open_again(void)
{
	const int fd = incstack__kernel_open(spool_file.path, O_RDWR | INCSTACK__RECORD_OPEN, 0);
	struct stat status;

	if (fd >= 0 && (incstack__kernel_fstat(fd, &status) != 0 ||
			status.st_dev != spool_file.device || status.st_ino != spool_file.inode)) {
		incstack__kernel_close(fd);
		return -1;
	}
	return fd;
}

/* Extends the file by a quarter of its size, so that there are few segments. */
static int extend(size_t least)
{
	const struct incstack__spool_segment *last = newest_segment();
	const uint64_t offset = last->offset + last->bytes;
	size_t bytes = (offset / 4 + LEAST_STEP) & ~(size_t)(LEAST_STEP - 1);
	void *memory;
	int fd;

	if (spool_file.header->segments == INCSTACK__SPOOL_SEGMENTS)
		return -1;
	fd = open_again();
	if (fd < 0)
		return -1;
	if (bytes < least)
		bytes = (least + LEAST_STEP) & ~(size_t)(LEAST_STEP - 1);
	memory = map_more(fd, offset, bytes);
	incstack__kernel_close(fd);
	if (!memory)
		return -1;
	add_segment(memory, offset, bytes);
	return 0;
}

/* Fills the file up to the pieces that were cut, and some more. Nothing was stored there yet. If
 * the filling fails, or in the handler of a tick, only the first accesses to the pages are
 * slower. */
static void fill_ahead(void)
{
	const struct incstack__spool_segment *segment = newest_segment();
	const uint64_t offset = segment->offset + ((uintptr_t)spool_file.filled - segment->address);
	const size_t most = (size_t)(spool_file.next + spool_file.left - spool_file.filled);
	size_t bytes = (size_t)(spool_file.next - spool_file.filled) + FILLED_AHEAD;
	int fd;

	bytes = bytes < most ? bytes & ~(size_t)(UNIT_BYTES - 1) : most;
	spool_file.filled += bytes;
	if (incstack__record_local.handling)
		return;
	fd = open_again();
	if (fd < 0)
		return;
	if (within_limit(offset + bytes))
		fill(fd, offset, bytes);
	incstack__kernel_close(fd);
}

static int extend_here(size_t least)
{
	return incstack__record_local.handling ? -1 : extend(least);
}

void *incstack__spool_file_cut(size_t bytes)
{
	void *memory;

	if (!spool_file.header || (spool_file.left < bytes && extend_here(bytes) != 0))
		return NULL;
	memory = spool_file.next;
	spool_file.next += bytes;
	spool_file.left -= bytes;
	if (spool_file.next > spool_file.filled)
		fill_ahead();
	return memory;
}

void incstack__spool_file_ahead(size_t bytes)
{
	if (spool_file.header && spool_file.left < bytes)
		extend(bytes);
}

struct incstack__spool_header *incstack__spool_file_header(void)
{
	return spool_file.header;
}

uint64_t incstack__spool_file_offset(const void *memory)
{
	for (uint32_t i = 0; spool_file.header && i < spool_file.header->segments; i++) {
		const struct incstack__spool_segment *s = &spool_file.header->segment[i];

		if ((uintptr_t)memory - s->address < s->bytes)
			return s->offset + ((uintptr_t)memory - s->address);
	}
	return 0;
}

/* Returns the start time of the process: field 22 of /proc/self/stat. The fields are counted from
 * the end of the name, because the name may contain any character. */
static uint64_t start_of_process(void)
{
	char text[1024];
	const char *at;
	uint64_t start = 0;

	incstack__record_read_small("/proc/self/stat", text, sizeof(text));
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
		start = start * 10 + (uint64_t)(*at - '0');
	return start;
}

static int make_file(void)
{
	struct stat status;
	int fd;

	incstack__kernel_unlink(
		spool_file.path); /* not truncated: it may be the memory of another process */
	fd = incstack__kernel_open(spool_file.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 || incstack__kernel_fstat(fd, &status) == 0)
		return fd;
	incstack__kernel_close(fd);
	return -1;
}

static void describe(struct incstack__spool_header *header, int fd, uint64_t start_ns)
{
	struct stat status;

	header->version = INCSTACK__SPOOL_VERSION;
	header->pid = (uint64_t)incstack__recording.pid;
	header->start_ns = start_ns;
	header->process_start = start_of_process();
	if (incstack__kernel_fstat(fd, &status) == 0) {
		spool_file.device = status.st_dev;
		spool_file.inode = status.st_ino;
	}
	spool_file.header = header;
	add_segment(header, 0, LEAST_STEP);
	spool_file.filled += FILLED_FIRST;
	spool_file.next += INCSTACK__SPOOL_HEADER_BYTES;
	spool_file.left -= INCSTACK__SPOOL_HEADER_BYTES;
	header->magic = INCSTACK__SPOOL_MAGIC;
}

void incstack__spool_open(const char *trace, uint64_t start_ns)
{
	void *memory = NULL;
	int fd;

	snprintf(spool_file.path, sizeof(spool_file.path), "%s" INCSTACK__SPOOL_SUFFIX, trace);
	fd = incstack__recording.wiped ? make_file() : -1;
	if (fd >= 0)
		memory = map_more(fd, 0, LEAST_STEP);
	if (memory) {
		fill(fd, 0, FILLED_FIRST);
		describe(memory, fd, start_ns);
	} else {
		if (fd >= 0)
			incstack__kernel_unlink(spool_file.path);
		incstack__record_note(INCSTACK__NOTE_NO_SHARED_MEMORY);
	}
	if (fd >= 0)
		incstack__kernel_close(fd);
}

void incstack__spool_rename(const char *trace, const char *new_trace)
{
	char old[sizeof(spool_file.path)];
	char new[sizeof(spool_file.path)];

	snprintf(old, sizeof(old), "%s" INCSTACK__SPOOL_SUFFIX, trace);
	snprintf(new, sizeof(new), "%s" INCSTACK__SPOOL_SUFFIX, new_trace);
	incstack__kernel_rename(old, new);
}

void incstack__spool_remove(void)
{
	struct stat status;

	if (spool_file.header && incstack__kernel_stat(spool_file.path, &status) == 0 &&
	    status.st_dev == spool_file.device && status.st_ino == spool_file.inode)
		incstack__kernel_unlink(spool_file.path);
}

/* Calls `part` for each segment of the spool, and ends the use of the spool. The list of segments
 * is in the first segment, so the list is copied before. */
static void part_with(void (*part)(void *memory, size_t bytes))
{
	struct incstack__spool_segment segments[INCSTACK__SPOOL_SEGMENTS];
	uint32_t count = 0;

	if (spool_file.header) {
		memcpy(segments, spool_file.header->segment, sizeof(segments));
		count = spool_file.header->segments;
	}
	for (uint32_t i = 0; i < count; i++)
		part((void *)segments[i].address, segments[i].bytes);
	memset(&spool_file, 0, sizeof(spool_file));
}

void incstack__spool_file_leave(void)
{
	part_with(unmap);
}

void incstack__spool_file_make_private(void)
{
	part_with(incstack__record_make_private);
}
