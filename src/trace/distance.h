/* SPDX-License-Identifier: MIT
 *
 * The barrier distance of a stack, chosen from what is observed.
 */
#ifndef INCSTACK__DISTANCE_H
#define INCSTACK__DISTANCE_H

#include "stack.h"

void incstack__distance_open(stack *s);
void incstack__distance_note(stack *s, const trace *t);
void incstack__distance_clear_last(stack *s);
void incstack__distance_renew(stack *s);
void incstack__distance_pay(stack *s, uint32_t frames);
static inline void distance_rent(stack *s, uint32_t frames)
{
	if (frames > s->walk_target)
		incstack__distance_pay(s, frames);
}
static inline void distance_observe(stack *s, const trace *t)
{
	if (__builtin_expect(s->samples >= s->observe_at, 0))
		incstack__distance_note(s, t);
}

#endif
