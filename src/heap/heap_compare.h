/* SPDX-License-Identifier: MIT
 *
 * Mode VALIDATE: compares a whole walk with the one before.
 */
#ifndef INCSTACK__HEAP_COMPARE_H
#define INCSTACK__HEAP_COMPARE_H

#include "heap_memory.h"

const object *incstack__heap_compare(stack *s, const object *top, uint32_t depth);

#endif
