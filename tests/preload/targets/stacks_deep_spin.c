/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack cpu truncates at most: 2
 * incstack cpu depth: 15000
 * incstack cpu walkers: own
 *
 * A deep recursion without a call of libc. At its end the program spins, so ticks find all of its frames,
 * and nobody but their handler can make room.
 */
#include "nest.h"

enum { DEPTH = 20000, SPINS = 30000000 };

static volatile int spun;

static __attribute__((noinline)) int descend(int depth)
{
	int below;

	if (depth == 0) {
		for (spun = 0; spun < SPINS; spun++)
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
