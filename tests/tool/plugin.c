/* SPDX-License-Identifier: MIT
 *
 * Allocates in a function that only its own file can name.
 */
#include <stdlib.h>

void leak_in_plugin(int count);

__attribute__((noinline)) void leak_in_plugin(int count)
{
	static void *volatile kept;

	for (int i = 0; i < count; i++)
		kept = malloc(100);
	(void)kept;
}
