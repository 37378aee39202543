/* SPDX-License-Identifier: MIT
 *
 * The descriptor of the trace file. The program may close descriptors that it does not know, and
 * may put its own files at any number. So the descriptor has a high number, and it evades libc's
 * functions that close or replace descriptors. If the program closes it by a system call, the
 * file is opened again.
 */
#include <stdatomic.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "tracefile/format.h"
#include "recorder/system/open.h"
#include "recorder/output/output.h"
#include "recorder/system/system.h"

enum { HIGH = 900, BELOW_LIMIT = 24 };

/* Returns the lowest number that the descriptor may get, with some room below the limit. */
static int first_number(void)
{
	struct rlimit limit;

	if (incstack__kernel_getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    limit.rlim_cur > HIGH + BELOW_LIMIT)
		return HIGH;
	return limit.rlim_cur > 2 * BELOW_LIMIT ? (int)limit.rlim_cur - BELOW_LIMIT : 0;
}

static int move_high(int fd, int first)
{
	const int high = fd >= 0 ? incstack__kernel_fcntl(fd, F_DUPFD_CLOEXEC, first) : -1;

	if (high < 0)
		return fd;
	incstack__kernel_close(fd);
	return high;
}

static bool is_file(int fd, struct stat *status)
{
	return fd >= 0 && incstack__kernel_fstat(fd, status) == 0 &&
	       status->st_dev == incstack__recording.device &&
	       status->st_ino == incstack__recording.inode;
}

/* Returns true if another process has locked the file. On a file system without locks, no file
 * counts as locked. */
static bool is_locked(int fd)
{
	return incstack__kernel_flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* Whether the file may be overwritten, because it is empty or a trace file. Anybody who may write
 * to the folder can put another file there, because the name of the trace file can be guessed. */
static bool is_ours(int fd, struct stat *status)
{
	uint64_t magic = 0;

	if (incstack__kernel_fstat(fd, status) != 0 || !S_ISREG(status->st_mode) ||
	    status->st_nlink > 1)
		return false;
	return status->st_size == 0 ||
	       (incstack__kernel_pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
		magic == INCSTACK__TRACEFILE_MAGIC);
}

/* A process that writes a trace file keeps it locked, so that another run with the same name does
 * not overwrite it. A file that an earlier run has left is not locked and is overwritten. */
int incstack__record_create(const char *path, struct stat *status)
{
	const int fd =
		move_high(incstack__kernel_open(
				  path, O_RDWR | O_CREAT | O_APPEND | INCSTACK__RECORD_OPEN, 0666),
			  first_number());
	int error;

	if (fd < 0)
		return -1;
	if (!is_locked(fd) && is_ours(fd, status) && incstack__kernel_ftruncate(fd, 0) == 0 &&
	    incstack__kernel_fstat(fd, status) == 0)
		return fd;
	error = errno;
	incstack__kernel_close(fd);
	errno = error;
	return -1;
}

/* The number may belong to a file of the program by now, so device and inode are compared. The
 * atomics are relaxed, because the descriptor is a number, and nothing else is published with
 * it. */
int incstack__record_descriptor(struct stat *status)
{
	struct incstack__recording *r = &incstack__recording;
	int closed = atomic_load_explicit(&r->fd, memory_order_relaxed);
	int error = ENOENT; /* another file has the path */
	int again;

	if (is_file(closed, status))
		return closed;
	again = incstack__kernel_open(r->path, O_WRONLY | O_APPEND | INCSTACK__RECORD_OPEN, 0);
	if (again < 0)
		error = errno;
	again = move_high(again, first_number());
	if (is_file(again, status) &&
	    atomic_compare_exchange_strong_explicit(&r->fd, &closed, again, memory_order_relaxed,
						    memory_order_relaxed)) {
		incstack__kernel_flock(again, LOCK_EX | LOCK_NB);
		return again;
	}
	if (again >= 0)
		incstack__kernel_close(again);
	if (is_file(closed, status)) /* another thread has opened it */
		return closed;
	errno = error;
	return -1;
}

void incstack__record_close(void)
{
	const int fd = atomic_exchange_explicit(&incstack__recording.fd, -1, memory_order_relaxed);
	struct stat status;

	if (is_file(fd, &status))
		incstack__kernel_close(fd);
	incstack__record_unmap(incstack__recording.slots, INCSTACK__TRACEFILE_COUNTERS_BYTES);
	incstack__recording.slots = NULL;
}

/* A child of vfork shares the memory of its parent but has its own descriptors, which it may
 * close. */
int incstack__record_on_close(unsigned low, unsigned high)
{
	const struct incstack__recording *r = &incstack__recording;
	const int fd = atomic_load_explicit(&r->fd, memory_order_relaxed);
	const int saved = errno;
	struct stat status;
	bool ours;

	if (fd < 0 || (unsigned)fd < low || (unsigned)fd > high ||
	    !atomic_load_explicit(&r->on, memory_order_relaxed))
		return -1;
	ours = incstack__kernel_getpid() == r->pid && is_file(fd, &status);
	errno = saved;
	return ours ? fd : -1;
}

void incstack__record_on_replace(int fd)
{
	struct incstack__recording *r = &incstack__recording;
	const int saved = errno;
	int moved;

	if (incstack__record_on_close((unsigned)fd, (unsigned)fd) != fd)
		return;
	moved = incstack__kernel_fcntl(fd, F_DUPFD_CLOEXEC, fd + 1);
	if (moved < 0)
		moved = incstack__kernel_fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (moved >= 0 && !atomic_compare_exchange_strong_explicit(
				  &r->fd, &fd, moved, memory_order_relaxed, memory_order_relaxed))
		incstack__kernel_close(moved);
	errno = saved;
}
