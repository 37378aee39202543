/* SPDX-License-Identifier: MIT
 *
 * Preloaded, it is a library whose constructor fails before those of the recorder run.
 */
#include <signal.h>
#include <stdlib.h>

__attribute__((constructor)) static void fail(void)
{
	if (getenv("INCSTACK_HEAP") != NULL) /* not in the tool */
		raise(SIGSEGV);
}
