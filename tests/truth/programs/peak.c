/* SPDX-License-Identifier: MIT
 *
 * flags: -O2
 * peak 600000 block<spike<top
 */
#include <stdlib.h>

static inline char *block(size_t size)
{
	char *const fresh = malloc(size); /* <block block> */

	__asm__ volatile("" : : "r"(fresh) : "memory");
	return fresh;
}

__attribute__((noinline)) static int spike(void)
{
	char *blocks[6];

	for (int i = 0; i < 6; i++)
		blocks[i] = block(100000); /* <spike spike> */
	for (int i = 0; i < 6; i++)
		free(blocks[i]);
	return 6;
}

int main(void)
{
	for (int i = 0; i < 100; i++) {
		char *small = block(1000);

		free(small);
	}
	return spike() != 6; /* <top main> */
}
