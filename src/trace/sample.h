/* SPDX-License-Identifier: MIT
 *
 * The parts of a sample, for the drain of a queue.
 */
#ifndef INCSTACK__SAMPLE_H
#define INCSTACK__SAMPLE_H

#include "stack.h"

object *incstack__sample_frames(stack *s, const struct incstack_top *poll);
bool incstack__sample_add(stack *s, const struct incstack_queued *what, object top,
			  const object *caller, const object *old,
			  const struct incstack_frame *now);

#endif
