/* SPDX-License-Identifier: MIT
 *
 * What others do to a machine stack.
 */
#ifndef INCSTACK__STACK_CHANGE_H
#define INCSTACK__STACK_CHANGE_H

#include "stack.h"

int incstack__machine_frame_moved(stack *s, uintptr_t old, uintptr_t new);
int incstack__machine_moved(stack *s, uintptr_t new_low, uintptr_t new_high);

#endif
