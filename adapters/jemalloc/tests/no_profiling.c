/* SPDX-License-Identifier: MIT
 *
 * The mallctl of a jemalloc that was built without profiling; the rest of malloc is libc's.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "incstack_jemalloc.h"

incstack_jemalloc_control mallctl;

int mallctl(const char *name, void *old, size_t *old_bytes, void *fresh, size_t fresh_bytes)
{
	(void)fresh;
	(void)fresh_bytes;
	if (strcmp(name, "config.prof") != 0 || *old_bytes != sizeof(bool))
		return ENOENT;
	*(bool *)old = false;
	return 0;
}
