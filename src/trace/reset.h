/* SPDX-License-Identifier: MIT
 *
 * Resets a stack whose known chain cannot be trusted.
 */
#ifndef INCSTACK__RESET_H
#define INCSTACK__RESET_H

#include "stack.h"

void incstack__reset_stack(stack *s, bool restore);
bool incstack__left_behind(const stack *s, uintptr_t operation, uintptr_t sp);

#endif
