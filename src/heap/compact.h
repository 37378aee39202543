/* SPDX-License-Identifier: MIT
 *
 * Gives back the memory of objects that are not known any more.
 */
#ifndef INCSTACK__HEAP_COMPACT_H
#define INCSTACK__HEAP_COMPACT_H

#include "barriers.h"

void incstack__heap_compact(stack *s);

/* Before a trace or a tree is made: uses the memory again that nobody needs any more. If much else is not known
 * any more, the known objects are copied. There are so many of the others then that each costs less than a copy. */
static inline void begin(stack *s)
{
	struct arena *a = &s->arena;
	if (LIKELY(!s->tree)) {
		if (!LIKELY(a->newest && a->newest->before < s->copy_at)) {
			incstack__heap_compact(s);
		} else if (LIKELY(s->scratch_end == a->next && all_released(a))) {
			a->next = s->scratch;
			return;
		}
	}
	if (s->scratch_end != a->next)
		s->scratch = a->next;
}

#endif
