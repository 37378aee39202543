/* SPDX-License-Identifier: MIT
 *
 * Preloaded, it simulates a full disk: 300000 bytes in total can be written to high descriptors. The
 * variable FULL_DISK_ERROR has the number of another error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HIGH = 100, MOST = 300000 };

static size_t written;

static long raw(long number, const long *arguments)
{
	register long fourth __asm__("r10") = arguments[3];
	register long fifth __asm__("r8") = arguments[4];
	register long sixth __asm__("r9") = arguments[5];
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]),
			   "r"(fourth), "r"(fifth), "r"(sixth)
			 : "rcx", "r11", "memory");
	return result;
}

/* Returns how much of the parts there is room for. */
static size_t room_for(const struct iovec *parts, int count)
{
	size_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return bytes < MOST - written ? bytes : MOST - written;
}

/* Only the last part that is written may be cut. */
static ssize_t write_some(int fd, const struct iovec *parts, int count, size_t bytes)
{
	for (int i = 0; i < count && bytes > 0; i++) {
		const size_t part = bytes < parts[i].iov_len ? bytes : parts[i].iov_len;

		if (write(fd, parts[i].iov_base, part) != (ssize_t)part)
			return -1;
		bytes -= part;
		written += part;
	}
	return 0;
}

static ssize_t write_parts(int fd, const struct iovec *parts, int count)
{
	const size_t bytes = room_for(parts, count);

	if (bytes > 0)
		return write_some(fd, parts, count, bytes) == 0 ? (ssize_t)bytes : -1;
	errno = getenv("FULL_DISK_ERROR") != NULL ? atoi(getenv("FULL_DISK_ERROR")) : ENOSPC;
	return -1;
}

/* The recorder calls the kernel through this function of libc. */
long syscall(long number, ...)
{
	long arguments[6], result;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_writev && arguments[0] >= HIGH)
		return write_parts((int)arguments[0], (const struct iovec *)arguments[1],
				   (int)arguments[2]);
	result = raw(number, arguments);
	if (result >= 0 || result < -4095)
		return result;
	errno = (int)-result;
	return -1;
}
