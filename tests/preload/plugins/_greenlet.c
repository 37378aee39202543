/* SPDX-License-Identifier: MIT
 *
 * Has the name of the extension module with which Python programs copy stacks.
 */
#include <stdlib.h>

void greenlet_call(void (*action)(void));
void greenlet_call(void (*action)(void))
{
	void *volatile block = malloc(100);

	action();
	free(block);
}
