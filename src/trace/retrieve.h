/* SPDX-License-Identifier: MIT
 *
 * Completes open traces.
 */
#ifndef INCSTACK__RETRIEVE_H
#define INCSTACK__RETRIEVE_H

#include "stack.h"

int incstack__complete(stack *s, bool grow);
void incstack__machine_thin(stack *s, const uintptr_t *frame);
bool incstack__gap_narrow(stack *s, object *o);
void incstack__lift_all(stack *s, bool certain);
int incstack__decode_range(stack *s, uintptr_t low, uintptr_t bytes);

#endif
