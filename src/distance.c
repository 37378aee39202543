/* SPDX-License-Identifier: MIT
 *
 * Chooses the barrier distance of a stack from what it observes: how many
 * frames had changed at each sample, and how many returns were intercepted. An
 * intercepted return costs as much as walking several frames, so the barrier
 * goes deep enough that few fire, and no deeper than the changes reach.
 */
#include "internal.h"

enum { WINDOW = 64, RETURNS_TOLERATED = WINDOW / 8 };

/* At a sample (or a walk after a return) `changed` frames were not known. */
void incstack__distance_observe(stack *s, uint32_t changed)
{
	struct distance *d = &s->distance;
	if (changed > d->deepest)
		d->deepest = changed;
	if (d->fixed || ++d->samples < WINDOW)
		return;
	if (d->returns > RETURNS_TOLERATED)
		d->value = d->value ? d->value * 2 : 1;
	else if (!d->returns && d->deepest < d->value)
		d->value = d->deepest;
	if (d->value > INCSTACK_DISTANCE_MAX)
		d->value = INCSTACK_DISTANCE_MAX;
	d->samples = d->returns = d->deepest = 0;
}
