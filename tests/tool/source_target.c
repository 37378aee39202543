/* SPDX-License-Identifier: MIT
 *
 * A C program with two calls of malloc in one line, and another one in the next line of the same function. The
 * comments mark the lines that the test wants to see.
 */
#include <stdlib.h>

static void *volatile sink, *volatile other;

__attribute__((always_inline)) static inline void *get(size_t bytes)
{
	return malloc(bytes); /* get */
}

__attribute__((noinline)) static void places(void)
{
	/* clang-format off */
	sink = malloc(100); other = malloc(100); /* both */
	/* clang-format on */
	free(sink);
	free(other);
	sink = get(100); /* one */
	free(sink);
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		places(); /* main */
}
