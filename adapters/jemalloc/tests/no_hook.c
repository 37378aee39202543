/* SPDX-License-Identifier: MIT
 *
 * The mallctl of a jemalloc that profiles but takes no other unwinder; the rest of malloc is libc's.
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
	if (strcmp(name, "config.prof") != 0 && strcmp(name, "opt.prof") != 0)
		return ENOENT;
	if (*old_bytes != sizeof(bool))
		return EINVAL;
	*(bool *)old = true;
	return 0;
}
