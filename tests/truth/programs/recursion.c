/* SPDX-License-Identifier: MIT
 *
 * flags: -O1
 * leak 16 alloc<down<down<down<top
 */
#include <stdlib.h>

void *volatile kept;

__attribute__((noinline)) static int down(int depth)
{
	if (depth == 0) {
		kept = malloc(16); /* <alloc down> */
		return 1;
	}
	const int below = down(depth - 1); /* <down down> */

	__asm__ volatile("" : : : "memory");
	return below + 1;
}

int main(void)
{
	return down(3) != 4; /* <top main> */
}
