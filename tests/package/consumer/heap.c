/* SPDX-License-Identifier: MIT
 *
 * Uses the part for frames on the heap as an installed package.
 */
#include <incstack/heap.h>

int main(void)
{
	struct incstack_heap *heap;
	const struct incstack_heap_options no_functions = {.size = sizeof(no_functions)};
	return incstack_version() != INCSTACK_VERSION ||
	       incstack_heap_create(&no_functions, &heap) != INCSTACK_EINVAL;
}
