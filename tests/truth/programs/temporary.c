/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * calls 5000 scratch<work<top
 */
#include <stdlib.h>

static inline void scratch(size_t size)
{
	char *block = malloc(size); /* <scratch scratch> */

	__asm__ volatile("" : : "r"(block) : "memory");
	free(block);
}

__attribute__((noinline)) static int work(int rounds)
{
	for (int i = 0; i < rounds; i++)
		scratch(64); /* <work work> */
	return rounds;
}

int main(void)
{
	return work(5000) != 5000; /* <top main> */
}
