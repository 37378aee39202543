/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack cpu walkers: own
 * incstack heap returns: 1000
 *
 * A recursion that allocates rarely: thousands of frames are captured when they return,
 * or are jumped over, with no allocation in between.
 */
#include <setjmp.h>
#include <stdlib.h>

enum { DEPTH = 20000, ROUNDS = 4, EVERY = 1000 };

static jmp_buf base;

static __attribute__((noinline)) int descend(int depth, int jumps)
{
	volatile int one = 1;

	if (depth % EVERY == 0) {
		void *volatile block = malloc(16);

		free(block);
	}
	if (depth == DEPTH && jumps)
		longjmp(base, 1);
	return depth == DEPTH ? 0 : descend(depth + 1, jumps) + one;
}

int main(void)
{
	for (volatile int i = 0; i < ROUNDS; i++)
		if (setjmp(base) == 0 && descend(1, i % 2) != DEPTH - 1)
			return 1;
	return 0;
}
