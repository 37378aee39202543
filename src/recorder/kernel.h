/* SPDX-License-Identifier: MIT
 *
 * Calls of the kernel for files. The program may have a library that replaces libc's functions for them, takes a
 * lock in them, and allocates while it has the lock. An event comes from such an allocation. So the
 * recorder calls the kernel directly. Results and errno are those of libc's functions; none is a cancellation
 * point.
 */
#ifndef INCSTACK_RECORDER_KERNEL_H
#define INCSTACK_RECORDER_KERNEL_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static inline int incstack__kernel_open(const char *path, int flags, mode_t mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static inline int incstack__kernel_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

static inline ssize_t incstack__kernel_read(int fd, void *to, size_t bytes)
{
	return syscall(SYS_read, fd, to, bytes);
}

static inline ssize_t incstack__kernel_pread(int fd, void *to, size_t bytes, off_t at)
{
	return syscall(SYS_pread64, fd, to, bytes, at);
}

static inline ssize_t incstack__kernel_writev(int fd, const struct iovec *parts, int count)
{
	return syscall(SYS_writev, fd, parts, count);
}

static inline ssize_t incstack__kernel_pwritev(int fd, const struct iovec *parts, int count,
					       off_t at)
{
	return syscall(SYS_pwritev, fd, parts, count, at, 0);
}

static inline int incstack__kernel_fstat(int fd, struct stat *status)
{
	return (int)syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH);
}

static inline int incstack__kernel_stat(const char *path, struct stat *status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, 0);
}

static inline int incstack__kernel_flock(int fd, int operation)
{
	return (int)syscall(SYS_flock, fd, operation);
}

static inline int incstack__kernel_fcntl(int fd, int command, int argument)
{
	return (int)syscall(SYS_fcntl, fd, command, argument);
}

static inline int incstack__kernel_ftruncate(int fd, off_t bytes)
{
	return (int)syscall(SYS_ftruncate, fd, bytes);
}

static inline int incstack__kernel_access(const char *path, int mode)
{
	return (int)syscall(SYS_access, path, mode);
}

static inline ssize_t incstack__kernel_readlink(const char *path, char *to, size_t bytes)
{
	return syscall(SYS_readlink, path, to, bytes);
}

static inline int incstack__kernel_rename(const char *from, const char *to)
{
	return (int)syscall(SYS_rename, from, to);
}

static inline int incstack__kernel_unlink(const char *path)
{
	return (int)syscall(SYS_unlink, path);
}

#endif
