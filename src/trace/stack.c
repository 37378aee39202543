/* SPDX-License-Identifier: MIT
 *
 * Where the chain of a stack ends because the callers of an object will never be known.
 */
#include "stack.h"

/* Marks o as truncated, because its callers will never be known. */
void incstack__cut(stack *s, object *o)
{
	o->flags = (o->flags & ~(uint32_t)OBJECT_GAP) | INCSTACK_OBJECT_TRUNCATED;
	o->parent = NULL;
	s->arena.truncated++;
	s->stats.truncated++;
}

/* Ends a walk at o. `no_memory` tells whether lack of memory was the reason. */
void incstack__cut_walk(stack *s, object *o, bool no_memory)
{
	incstack__cut(s, o);
	s->found.cut = o;
	s->found.no_memory = no_memory;
}
