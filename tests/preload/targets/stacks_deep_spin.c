/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack cpu truncates at most: 50
 * incstack cpu depth: 15000
 * incstack cpu walkers: own
 *
 * A deep recursion without a call of libc. At its end the program spins, so ticks find all of its frames,
 * and nobody but their handler can make room.
 */
#include <sys/syscall.h>
#include <time.h>

#include "nest.h"

enum { DEPTH = 20000, TURNS = 1000000, SPIN_NS = 200000000 };

static volatile int spun;

/* How long the program used a processor. The kernel is called directly, so that no call of libc makes room. */
static long cpu_ns(void)
{
	struct timespec now;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_clock_gettime), "D"(CLOCK_PROCESS_CPUTIME_ID), "S"(&now)
			 : "rcx", "r11", "memory");
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

static __attribute__((noinline)) int descend(int depth)
{
	int below;

	if (depth == 0) {
		const long end = cpu_ns() + SPIN_NS;

		while (cpu_ns() < end)
			for (spun = 0; spun < TURNS; spun++)
				continue;
		return 0;
	}
	below = descend(depth - 1);
	__asm__ volatile("" ::: "memory");
	return below + 1;
}

int main(void)
{
	nest(10, allocate);
	allocate();
	return descend(DEPTH) == DEPTH ? 0 : 1;
}
