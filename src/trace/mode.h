/* SPDX-License-Identifier: MIT
 *
 * The mode of a stack, and its change while barriers and open traces exist.
 */
#ifndef INCSTACK__MODE_H
#define INCSTACK__MODE_H

#include "stack.h"

void incstack__mode_use(stack *s, uint32_t mode);
void incstack__mode_change(stack *s, uint32_t mode, const uintptr_t *frame);
void incstack__copied_check(stack *s, const uintptr_t *frame);

#endif
