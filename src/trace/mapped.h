/* SPDX-License-Identifier: MIT
 *
 * Which memory outside a known stack can be read.
 */
#ifndef INCSTACK__MAPPED_H
#define INCSTACK__MAPPED_H

#include "stack.h"

bool incstack__mapped(stack *s, uintptr_t address);
void incstack__mapped_clear(stack *s);

#endif
