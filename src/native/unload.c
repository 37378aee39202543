/* SPDX-License-Identifier: MIT
 *
 * Code that went away.
 */
#define UNW_LOCAL_ONLY
#include <stddef.h>

#include <libunwind.h>

#include <incstack/native.h>

#include "native.h"

void incstack__native_forget_walks(void)
{
	unw_flush_cache(unw_local_addr_space, 0, 0);
}

int incstack_native_code_unloaded(struct incstack_runtime *runtime)
{
	if (!runtime)
		return INCSTACK_EINVAL;
	incstack__native_forget_walks();
	return incstack_code_unloading(runtime, NULL, 0, UINTPTR_MAX);
}
