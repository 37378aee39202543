/* SPDX-License-Identifier: MIT
 *
 * The embedder's allocator, or malloc.
 */
#include <stdlib.h>

#include "runtime.h"

void *incstack__allocate(runtime *rt, size_t bytes)
{
	if (rt->embedder.allocate)
		return rt->embedder.allocate(rt->context, bytes);
	return malloc(bytes);
}

void incstack__release(runtime *rt, void *memory, size_t bytes)
{
	if (rt->embedder.release)
		rt->embedder.release(rt->context, memory, bytes);
	else
		free(memory);
}
