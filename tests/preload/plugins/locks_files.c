/* SPDX-License-Identifier: MIT
 *
 * A library that stands in for libc's functions for files, as loggers and sandboxes do: it takes a lock, and
 * allocates while it has the lock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(void)
{
	void *volatile block;

	pthread_mutex_lock(&lock);
	block = malloc(20);
	free(block);
	pthread_mutex_unlock(&lock);
}

int open(const char *path, int flags, ...)
{
	note();
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

ssize_t read(int fd, void *to, size_t bytes)
{
	note();
	return syscall(SYS_read, fd, to, bytes);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
	note();
	return syscall(SYS_pread64, fd, to, bytes, at);
}

int close(int fd)
{
	note();
	return (int)syscall(SYS_close, fd);
}
