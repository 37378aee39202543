/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack cpu truncates at most: 10
 *
 * Nearly all time is spent in the unwinder of C++. So a tick mostly comes when an exception has popped frames
 * already, or is about to pop them. There are some 150 ticks. If the callers are walked at every eighth
 * tick only, a third of the traces are truncated.
 */
#include "nest.h"

enum { DEPTH = 20, ROUNDS = 5000 };

static __attribute__((noinline)) void descend(int depth)
{
	if (depth == 0)
		throw 1;
	descend(depth - 1);
	__asm__ volatile("" ::: "memory");
}

int main()
{
	int caught = 0;

	nest(DEPTH, allocate);
	allocate();
	for (int i = 0; i < ROUNDS; i++) {
		try {
			descend(DEPTH);
		} catch (int one) {
			caught += one;
		}
	}
	return caught == ROUNDS ? 0 : 1;
}
