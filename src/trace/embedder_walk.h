/* SPDX-License-Identifier: MIT
 *
 * The walk over a stack that only the embedder can walk.
 */
#ifndef INCSTACK__EMBEDDER_WALK_H
#define INCSTACK__EMBEDDER_WALK_H

#include "unwind.h"

object *incstack__frames_walk(const struct walker *w, const struct cursor *at, object *child,
			      object *known);
bool incstack__frames_remove_popped(stack *s);
object *incstack__frames_meet(stack *s, object **known, uintptr_t frame);

#endif
