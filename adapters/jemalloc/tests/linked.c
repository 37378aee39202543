/* SPDX-License-Identifier: MIT
 *
 * A program that is linked with the adapter and makes the one call. Prints why it was refused, or how many stacks
 * jemalloc has got of the adapter.
 */
#include <stdio.h>
#include <stdlib.h>

#include "incstack_jemalloc.h"

int main(void)
{
	const char *why = incstack_jemalloc_start(NULL);
	void *volatile block;

	for (int i = 0; i < 1000; i++) {
		block = malloc(1000);
		free(block);
	}
	const struct incstack_jemalloc_counts counts = incstack_jemalloc_count();
	printf("%s: %llu stacks, %llu cut\n", why ? why : "started",
	       (unsigned long long)counts.stacks, (unsigned long long)counts.cut);
	return 0;
}
