/* SPDX-License-Identifier: MIT
 *
 * The trace file of this process: its header and shared counters, and appending
 * blocks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

void *incstack__record_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void *incstack__record_remap(void *memory, size_t bytes, size_t more)
{
	void *moved = mremap(memory, bytes, more, MREMAP_MAYMOVE);

	return moved == MAP_FAILED ? NULL : moved;
}

void incstack__record_unmap(void *memory, size_t bytes)
{
	if (memory != NULL)
		munmap(memory, bytes);
}

static void read_command(char *command, size_t size)
{
	const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	const ssize_t got = fd >= 0 ? read(fd, command, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	command[got > 0 ? got : 0] = '\0';
	for (ssize_t i = 0; i + 1 < got; i++)
		if (command[i] == '\0')
			command[i] = ' ';
}

/* Once a block could not be written whole, nothing that follows can be read. */
static int give_up(int error, const char *text)
{
	if (__atomic_exchange_n(&incstack__recording.failed, error, __ATOMIC_RELAXED) == 0 &&
	    write(STDERR_FILENO, text, strlen(text)) < 0)
		return -1;
	return -1;
}

/* Keeps the descriptor out of the low numbers, which targets close or dup onto. */
static int open_high(const char *path, int flags)
{
	const int low = open(path, flags | O_APPEND | O_CLOEXEC, 0666);
	const int high = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, 900) : -1;

	if (high < 0)
		return low;
	close(low);
	return high;
}

static int is_file(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_dev == incstack__recording.device &&
	       status.st_ino == incstack__recording.inode;
}

/* The descriptor of the file, opened again where the target has closed it: by now the
 * number may be that of a file of its own. Negative: it cannot be opened. */
static int descriptor(void)
{
	int *fd = &incstack__recording.fd;
	int closed = __atomic_load_n(fd, __ATOMIC_RELAXED);
	int again;

	if (is_file(closed))
		return closed;
	again = open_high(incstack__recording.path, O_WRONLY);
	if (again >= 0 && is_file(again) &&
	    __atomic_compare_exchange_n(fd, &closed, again, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return again;
	if (again >= 0)
		close(again);
	return is_file(closed) ? closed : -1; /* another thread has opened it */
}

void incstack__record_close(void)
{
	if (is_file(incstack__recording.fd))
		close(incstack__recording.fd);
}

void incstack__record_note(enum incstack__trace_note note)
{
	struct incstack__trace_slot *slots = incstack__recording.slots;

	if (slots != NULL)
		__atomic_fetch_or(&slots[0].notes, UINT64_C(1) << note, __ATOMIC_RELAXED);
}

int incstack__record_write(const void *data, size_t bytes)
{
	const unsigned char *at = data;
	int fd;

	if (__atomic_load_n(&incstack__recording.failed, __ATOMIC_RELAXED) != 0)
		return -1;
	fd = descriptor();
	if (fd < 0)
		return give_up(EBADF, "incstack: the program closed the trace file, and it cannot "
				      "be opened again; nothing more is recorded\n");
	while (bytes > 0) {
		const ssize_t done = write(fd, at, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return give_up(done < 0 ? errno : ENOSPC,
				       "incstack: the trace file cannot be written (is the disk "
				       "full?); nothing more is recorded\n");
		at += done;
		bytes -= (size_t)done;
	}
	return 0;
}

static int write_header(void)
{
	static struct incstack__trace_header header;
	char command[sizeof(header.command)];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	read_command(command, sizeof(command));
	incstack__trace_header_init(&header, (uint64_t)incstack__recording.pid,
				    (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
				    incstack__recording.interval, incstack__recording.mode,
				    command);
	return incstack__record_write(&header, sizeof(header));
}

/* The file is known by what it is, and opened again by its path. */
static int create(const char *path)
{
	struct incstack__recording *r = &incstack__recording;
	struct stat status;

	r->fd = open_high(path, O_RDWR | O_CREAT | O_TRUNC);
	if (r->fd < 0 || fstat(r->fd, &status) != 0)
		return -1;
	r->device = status.st_dev;
	r->inode = status.st_ino;
	snprintf(r->path, sizeof(r->path), "%s", path);
	return 0;
}

int incstack__record_open(const char *path)
{
	struct incstack__recording *r = &incstack__recording;
	void *slots;

	r->failed = 0;
	if (create(path) != 0 || write_header() != 0)
		return -1;
	/* The space is taken now: a store to a mapped page that finds the disk full would
	 * end the process. */
	errno = posix_fallocate(r->fd, 0, INCSTACK__TRACE_START);
	if (errno != 0)
		return -1;
	slots = mmap(NULL, INCSTACK__TRACE_COUNTERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		     r->fd, INCSTACK__TRACE_HEADER_BYTES);
	if (slots == MAP_FAILED)
		return -1;
	r->slots = slots;
	r->slots[0].notes = r->why;
	return 0;
}
