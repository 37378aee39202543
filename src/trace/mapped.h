/* SPDX-License-Identifier: MIT
 *
 * Which memory outside a known stack can be read.
 */
#ifndef INCSTACK__MAPPED_H
#define INCSTACK__MAPPED_H

#include "stack.h"

bool incstack__mapped(struct mapped *m, uintptr_t address);
void incstack__mapped_clear(stack *s);
void incstack__mapped_use(stack *s);

#endif
