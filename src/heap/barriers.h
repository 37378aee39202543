/* SPDX-License-Identifier: MIT
 *
 * The frames with a mark, and the objects that are known because of them.
 */
#ifndef INCSTACK__HEAP_BARRIERS_H
#define INCSTACK__HEAP_BARRIERS_H

#include "heap_memory.h"

bool incstack__heap_plant(stack *s, const object *o, uintptr_t caller);
void incstack__heap_cut(stack *s, const object *o);
uint32_t incstack__heap_find(const stack *s, uint32_t upto, uintptr_t name);
uint32_t incstack__heap_remove_stale(stack *s, uint32_t from, uint32_t to);
struct barrier incstack__heap_pop(stack *s);
void incstack__heap_move_down(stack *s, const object *o);

/* The parent is written once, by the library, before anybody else sees the object complete. */
static inline object *writable(const object *o)
{
	return (object *)(uintptr_t)o;
}

#endif
