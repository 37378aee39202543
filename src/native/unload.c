/* SPDX-License-Identifier: MIT
 *
 * Forgets the rules of code that was unloaded.
 */
#include <stddef.h>

#include <incstack/native.h>

int incstack_runtime_code_unloaded(struct incstack_runtime *runtime)
{
	if (!runtime)
		return INCSTACK_EINVAL;
	return incstack_runtime_code_unloading(runtime, NULL, 0, UINTPTR_MAX);
}
