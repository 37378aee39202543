/* SPDX-License-Identifier: MIT
 *
 * Allocates in functions that only its own file can name.
 */
#include <stdlib.h>

void leak_in_plugin(int count);
void *make_in_plugin(size_t bytes);

__attribute__((noinline)) void *make_in_plugin(size_t bytes)
{
	void *volatile block = malloc(bytes);

	return block;
}

__attribute__((noinline)) void leak_in_plugin(int count)
{
	static void *volatile kept;

	for (int i = 0; i < count; i++)
		kept = malloc(100);
	(void)kept;
}
