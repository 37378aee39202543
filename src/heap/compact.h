/* SPDX-License-Identifier: MIT
 *
 * Gives back the memory of objects that are not known any more.
 */
#ifndef INCSTACK__HEAP_COMPACT_H
#define INCSTACK__HEAP_COMPACT_H

#include "barriers.h"

void incstack__heap_compact(stack *s);

/* Copies the known objects if enough others have come together, so that an object costs less than one
 * copy. There must be no open trace. */
static inline void compact_if_due(stack *s)
{
	if (!LIKELY(s->arena.newest && s->arena.newest->before < s->copy_at))
		incstack__heap_compact(s);
}

#endif
