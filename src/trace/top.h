/* SPDX-License-Identifier: MIT
 *
 * The door of all walks over machine stacks: which frame is really at a top.
 */
#ifndef INCSTACK__TOP_H
#define INCSTACK__TOP_H

#include "unwind.h"

bool incstack__top_is_valid(const struct incstack_top *top);
struct cursor incstack__top_frame(const struct stepper *w, const struct incstack_top *top);
object *incstack__top_enter(stack *s, const struct incstack_top *top, struct cursor *at);

#endif
