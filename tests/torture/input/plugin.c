/* SPDX-License-Identifier: MIT
 *
 * A plugin: code that is loaded, calls back, and is unloaded.
 */
#include <stdlib.h>

void *plugin_use(int n, void *(*back)(int))
{
	/* Frames of another size in each plugin. */
	volatile char space[64 * (PLUGIN + 1)];
	void *block;

	space[0] = (char)n;
	if (n > 0)
		return plugin_use(n - 1, back);
	block = back(PLUGIN + space[0]);
	free(malloc(PLUGIN + 1));
	return block;
}
