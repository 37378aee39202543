/* SPDX-License-Identifier: MIT
 *
 * Handles a barrier that was hit.
 */
#ifndef INCSTACK__BARRIER_HIT_H
#define INCSTACK__BARRIER_HIT_H

#include "kind.h"

void incstack__machine_passed(stack *s, object *o, uintptr_t fp, enum ask ask,
			      uintptr_t plant_from);

#endif
