/* SPDX-License-Identifier: MIT
 *
 * Calls of the kernel, without libc's functions, which a library of the program may replace (D80).
 * Each call has the result and the errno of libc's function. None of these calls is a cancellation
 * point.
 */
#ifndef INCSTACK_RECORDER_KERNEL_H
#define INCSTACK_RECORDER_KERNEL_H

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "trace/shared.h"

static inline long incstack__kernel_result(long result)
{
	if ((unsigned long)result < -4095UL)
		return result;
	errno = (int)-result;
	return -1;
}

#define incstack__kernel_call(...) incstack__kernel_result(incstack__system_call(__VA_ARGS__))

static inline int incstack__kernel_open(const char *path, int flags, mode_t mode)
{
	return (int)incstack__kernel_call(SYS_openat, AT_FDCWD, path, flags, mode);
}

static inline int incstack__kernel_close(int fd)
{
	return (int)incstack__kernel_call(SYS_close, fd);
}

static inline ssize_t incstack__kernel_read(int fd, void *to, size_t bytes)
{
	return incstack__kernel_call(SYS_read, fd, to, bytes);
}

static inline ssize_t incstack__kernel_pread(int fd, void *to, size_t bytes, off_t at)
{
	return incstack__kernel_call(SYS_pread64, fd, to, bytes, at);
}

static inline ssize_t incstack__kernel_writev(int fd, const struct iovec *parts, int count)
{
	return incstack__kernel_call(SYS_writev, fd, parts, count);
}

static inline ssize_t incstack__kernel_pwritev(int fd, const struct iovec *parts, int count,
					       off_t at)
{
	return incstack__kernel_call(SYS_pwritev, fd, parts, count, at, 0);
}

static inline int incstack__kernel_fstat(int fd, struct stat *status)
{
	return (int)incstack__kernel_call(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH);
}

static inline int incstack__kernel_stat(const char *path, struct stat *status)
{
	return (int)incstack__kernel_call(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

static inline int incstack__kernel_flock(int fd, int operation)
{
	return (int)incstack__kernel_call(SYS_flock, fd, operation);
}

static inline int incstack__kernel_fcntl(int fd, int command, int argument)
{
	return (int)incstack__kernel_call(SYS_fcntl, fd, command, argument);
}

static inline int incstack__kernel_ftruncate(int fd, off_t bytes)
{
	return (int)incstack__kernel_call(SYS_ftruncate, fd, bytes);
}

static inline int incstack__kernel_access(const char *path, int mode)
{
	return (int)incstack__kernel_call(SYS_access, path, mode);
}

static inline ssize_t incstack__kernel_readlink(const char *path, char *to, size_t bytes)
{
	return incstack__kernel_call(SYS_readlink, path, to, bytes);
}

static inline int incstack__kernel_rename(const char *from, const char *to)
{
	return (int)incstack__kernel_call(SYS_rename, from, to);
}

static inline int incstack__kernel_unlink(const char *path)
{
	return (int)incstack__kernel_call(SYS_unlink, path);
}

/* Returns an error, as posix_fallocate does. libc writes to a file that cannot allocate. */
static inline int incstack__kernel_fallocate(int fd, off_t from, off_t bytes)
{
	const long result = incstack__system_call(SYS_fallocate, fd, 0, from, bytes);

	return result == -EOPNOTSUPP ? posix_fallocate(fd, from, bytes) : (int)-result;
}

static inline void *incstack__kernel_mmap(void *at, size_t bytes, int access, int flags, int fd,
					  off_t from)
{
	return (void *)incstack__kernel_call(SYS_mmap, at, bytes, access, flags, fd, from);
}

static inline void *incstack__kernel_mremap(void *at, size_t bytes, size_t more, int flags,
					    void *to)
{
	return (void *)incstack__kernel_call(SYS_mremap, at, bytes, more, flags, to);
}

static inline int incstack__kernel_munmap(void *at, size_t bytes)
{
	return (int)incstack__kernel_call(SYS_munmap, at, bytes);
}

static inline int incstack__kernel_madvise(void *at, size_t bytes, int advice)
{
	return (int)incstack__kernel_call(SYS_madvise, at, bytes, advice);
}

static inline int incstack__kernel_getrlimit(int what, struct rlimit *limit)
{
	return (int)incstack__kernel_call(SYS_prlimit64, 0, what, NULL, limit);
}

static inline pid_t incstack__kernel_getpid(void)
{
	return (pid_t)incstack__system_call(SYS_getpid);
}

static inline pid_t incstack__kernel_gettid(void)
{
	return (pid_t)incstack__system_call(SYS_gettid);
}

#endif
