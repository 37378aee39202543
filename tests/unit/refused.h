/* SPDX-License-Identifier: MIT
 *
 * Stands in for the system calls of the sources that are included after it. A test names the
 * calls that fail, and the number of the first call that fails, or of the only one.
 */
#ifndef REFUSED_H
#define REFUSED_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "recorder/system/kernel.h"

static struct refusal {
	const char *call; /* null: no call is refused */
	unsigned first;   /* its number, from 0 on */
	unsigned count;   /* how many are refused */
	int error;
	unsigned calls; /* how many calls came */
} refusal;

/* The calls of that name are refused from number `first` on. */
static inline void refuse(const char *call, unsigned first, unsigned count, int error)
{
	refusal = (struct refusal){call, first, count, error, 0};
}

static inline void refuse_nothing(void)
{
	refusal.call = NULL;
}

static inline bool is_refused(const char *call)
{
	if (refusal.call == NULL || strcmp(call, refusal.call) != 0)
		return false;
	if (refusal.calls++ - refusal.first >= refusal.count)
		return false;
	errno = refusal.error;
	return true;
}

/* With error 0, three bytes of the first part that is not empty are written, or the last one of it. */
static inline ssize_t refused_writev(int fd, const struct iovec *part, int count)
{
	while (count-- > 1 && part->iov_len == 0)
		part++;
	return refusal.error != 0 ? -1 : write(fd, part->iov_base, part->iov_len > 3 ? 3 : 1);
}

#define incstack__kernel_open(...) (is_refused("open") ? -1 : incstack__kernel_open(__VA_ARGS__))
#define incstack__kernel_read(...) (is_refused("read") ? -1 : incstack__kernel_read(__VA_ARGS__))
#define incstack__kernel_writev(...) \
	(is_refused("writev") ? refused_writev(__VA_ARGS__) : incstack__kernel_writev(__VA_ARGS__))
#define incstack__kernel_pwritev(...) \
	(is_refused("pwritev") ? -1 : incstack__kernel_pwritev(__VA_ARGS__))
#define incstack__kernel_fstat(...) (is_refused("fstat") ? -1 : incstack__kernel_fstat(__VA_ARGS__))
#define incstack__kernel_flock(...) (is_refused("flock") ? -1 : incstack__kernel_flock(__VA_ARGS__))
#define incstack__kernel_fcntl(...) (is_refused("fcntl") ? -1 : incstack__kernel_fcntl(__VA_ARGS__))
#define incstack__kernel_rename(...) \
	(is_refused("rename") ? -1 : incstack__kernel_rename(__VA_ARGS__))
#define incstack__kernel_mmap(...) \
	(is_refused("mmap") ? MAP_FAILED : incstack__kernel_mmap(__VA_ARGS__))
#define incstack__kernel_mremap(...) \
	(is_refused("mremap") ? MAP_FAILED : incstack__kernel_mremap(__VA_ARGS__))
#define incstack__kernel_getrlimit(...) \
	(is_refused("getrlimit") ? -1 : incstack__kernel_getrlimit(__VA_ARGS__))
#define incstack__kernel_fallocate(...) \
	(is_refused("fallocate") ? refusal.error : incstack__kernel_fallocate(__VA_ARGS__))

#endif
