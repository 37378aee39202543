/* SPDX-License-Identifier: MIT
 *
 * The parts of a sample, for the kinds of stacks and for the drain of a queue.
 */
#ifndef INCSTACK__SAMPLE_H
#define INCSTACK__SAMPLE_H

#include "kind.h"

struct queued;

bool incstack__sample_fits(stack *s);
trace *incstack__sample_begin(stack *s, uint64_t id, uint64_t weight);
object *incstack__sample_walk(stack *s, const struct cursor *at, uint32_t flags);
void incstack__sample_finish(stack *s, trace *t);
int incstack__machine_sample(stack *s, uint64_t id, uint64_t weight,
			     const struct incstack_top *top);
object *incstack__machine_frames(stack *s, const struct incstack_top *poll);
bool incstack__sample_add(stack *s, const struct queued *what, object top, const object *caller,
			  const object *old, const struct incstack_frame *now);

#endif
