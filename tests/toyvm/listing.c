/* SPDX-License-Identifier: MIT
 *
 * Tells perf and gdb the names of the generated code, if an option of the run asks for it.
 */
#include <incstack/jit.h>

#include "vm.h"

static bool listing;

void listing_start(void)
{
	listing = true;
}

struct incstack_jit_code *listing_add(uintptr_t code, size_t size, const char *name)
{
	struct incstack_jit_code *listed = NULL;
	if (listing && (incstack_perf_map_add(code, size, name) ||
			incstack_jit_register(code, size, name, &listed)))
		COUNT(lost);
	return listed;
}

void listing_remove(struct incstack_jit_code *listed)
{
	if (listed)
		incstack_jit_unregister(listed);
}
