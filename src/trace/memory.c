/* SPDX-License-Identifier: MIT
 *
 * The embedder's allocator, or malloc, and the end of a runtime.
 */
#include <stdlib.h>

#include "arena.h"
#include "runtime.h"

void *incstack__allocate(runtime *rt, size_t bytes)
{
	if (rt->embedder.memory.allocate)
		return rt->embedder.memory.allocate(rt->context, bytes);
	return malloc(bytes);
}

void incstack__release(runtime *rt, void *memory, size_t bytes)
{
	if (rt->embedder.memory.release)
		rt->embedder.memory.release(rt->context, memory, bytes);
	else
		free(memory);
}

void incstack__runtime_drop(runtime *rt)
{
	/* acq_rel: what the other users did happened before the memory is freed. */
	if (atomic_fetch_sub_explicit(&rt->users, 1, memory_order_acq_rel) != 1)
		return;
	incstack__arena_close(rt);
	incstack__rule_free(rt);
	incstack__release(rt, rt, sizeof(*rt));
}
