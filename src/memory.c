/* SPDX-License-Identifier: MIT
 *
 * The embedder's allocators, or malloc.
 */
#include <stdlib.h>

#include "internal.h"

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

void *incstack__allocate_traces(runtime *rt, size_t bytes)
{
	if (rt->embedder.allocate_traces)
		return rt->embedder.allocate_traces(rt->context, bytes);
	return incstack__allocate(rt, bytes);
}

void incstack__release_traces(runtime *rt, void *memory, size_t bytes)
{
	if (rt->embedder.release_traces)
		rt->embedder.release_traces(rt->context, memory, bytes);
	else
		incstack__release(rt, memory, bytes);
}
