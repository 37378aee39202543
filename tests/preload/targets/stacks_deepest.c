/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 *
 * Stacks with more frames than --crosscheck compares.
 */
#include <stdlib.h>

enum { DEPTH = 80000, EVERY = 16000 };

static __attribute__((noinline)) int descend(int depth)
{
	volatile int one = 1;

	if (depth % EVERY == 0) {
		void *volatile block = malloc(16);

		free(block);
	}
	return depth == DEPTH ? 0 : descend(depth + 1) + one;
}

int main(void)
{
	return descend(1) != DEPTH - 1;
}
