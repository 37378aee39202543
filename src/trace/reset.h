/* SPDX-License-Identifier: MIT
 *
 * Resets a stack whose known chain cannot be trusted.
 */
#ifndef INCSTACK__RESET_H
#define INCSTACK__RESET_H

#include "stack.h"

void incstack__reset_stack(stack *s, bool restore);

#endif
