/* SPDX-License-Identifier: MIT
 *
 * Is preloaded and moves the heap of a program by INCSTACK_SHIFT bytes. A program is some percent
 * faster or slower depending on how its data lie in cache lines, and that depends on what was
 * allocated before its own code ran. An average over many shifts removes this effect.
 */
#include <stdlib.h>

__attribute__((constructor)) static void shift(void)
{
	const char *text = getenv("INCSTACK_SHIFT");
	const long bytes = text != NULL ? strtol(text, NULL, 10) : 0;
	void *volatile block = bytes > 0 ? malloc((size_t)bytes) : NULL;

	(void)block; /* it is never given back */
}
