/* SPDX-License-Identifier: MIT
 *
 * The clock, the futex, and the word that tells a child of fork from its parent.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "safepoint.h"

#define NS_PER_S UINT64_C(1000000000)

uint64_t incstack__now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void incstack__futex_wait(_Atomic(uint32_t) *word, uint32_t seen, uint64_t until)
{
	struct timespec end = {.tv_sec = (time_t)(until / NS_PER_S),
			       .tv_nsec = (long)(until % NS_PER_S)};
	int saved = errno;
	/* FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time. */
	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, until ? &end : NULL, NULL,
		FUTEX_BITSET_MATCH_ANY);
	errno = saved;
}

void incstack__futex_wake(_Atomic(uint32_t) *word)
{
	int saved = errno;
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}

uint32_t *incstack__alive_make(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint32_t *alive =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (alive == MAP_FAILED)
		return NULL;
	(void)madvise(alive, size, MADV_WIPEONFORK);
	*alive = 1;
	return alive;
}

void incstack__alive_free(uint32_t *alive)
{
	munmap(alive, (size_t)sysconf(_SC_PAGESIZE));
}
