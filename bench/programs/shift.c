/* SPDX-License-Identifier: MIT
 *
 * Preloaded: moves the heap of a program by INCSTACK_SHIFT bytes. Where its data lie in
 * the lines of the cache makes a program some percent faster or slower, and whatever is
 * allocated before its own code runs decides that; averaged over many places it is gone.
 */
#include <stdlib.h>

__attribute__((constructor)) static void shift(void)
{
	const char *text = getenv("INCSTACK_SHIFT");
	const long bytes = text != NULL ? strtol(text, NULL, 10) : 0;
	void *volatile block = bytes > 0 ? malloc((size_t)bytes) : NULL;

	(void)block; /* it is never given back */
}
