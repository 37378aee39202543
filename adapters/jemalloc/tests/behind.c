/* SPDX-License-Identifier: MIT
 *
 * Preloaded: it is linked with the adapter, so the adapter comes behind libc, which the program itself needs.
 */
#include <stdio.h>

#include "incstack_jemalloc.h"

__attribute__((constructor)) static void begin(void)
{
	const char *why = incstack_jemalloc_start(NULL);

	fprintf(stderr, "%s\n", why ? why : "started");
}
