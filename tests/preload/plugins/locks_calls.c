/* SPDX-License-Identifier: MIT
 *
 * A library that stands in for libc's functions that call the kernel.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "locks.h"

LOCKED(void *, mmap, (void *at, size_t bytes, int access, int flags, int fd, off_t offset),
       (at, bytes, access, flags, fd, offset))
LOCKED(int, munmap, (void *at, size_t bytes), (at, bytes))
LOCKED(int, madvise, (void *at, size_t bytes, int advice), (at, bytes, advice))
LOCKED(int, mprotect, (void *at, size_t bytes, int access), (at, bytes, access))
LOCKED(int, getrlimit, (__rlimit_resource_t what, struct rlimit *limit), (what, limit))
LOCKED(int, posix_fallocate, (int fd, off_t from, off_t bytes), (fd, from, bytes))
LOCKED(int, sigaction, (int number, const struct sigaction *new, struct sigaction *old),
       (number, new, old))
LOCKED(int, sigaltstack, (const stack_t *new, stack_t *old), (new, old))
LOCKED(int, sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *most),
       (set, info, most))
LOCKED(pid_t, getpid, (void), ())
LOCKED(pid_t, gettid, (void), ())

void *mremap(void *at, size_t bytes, size_t more, int flags, ...)
{
	static __typeof__(&mremap) next;
	va_list rest;
	void *to;

	va_start(rest, flags);
	to = va_arg(rest, void *);
	va_end(rest);
	if (next == NULL)
		next = (__typeof__(&mremap))dlsym(RTLD_NEXT, "mremap");
	note();
	return next(at, bytes, more, flags, to);
}

long syscall(long number, ...)
{
	static __typeof__(&syscall) next;
	long arguments[6];
	va_list rest;

	va_start(rest, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(rest, long);
	va_end(rest);
	if (next == NULL)
		next = (__typeof__(&syscall))dlsym(RTLD_NEXT, "syscall");
	note();
	return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		    arguments[5]);
}
