/* SPDX-License-Identifier: MIT
 *
 * What machine stacks have in common, whether their bounds are known or not.
 */
#ifndef INCSTACK__KIND_MACHINE_H
#define INCSTACK__KIND_MACHINE_H

#include "barrier.h"
#include "barrier_hit.h"
#include "frames.h"
#include "retrieve.h"
#include "sample.h"
#include "stack_change.h"
#include "top.h"
#include "walk.h"

int incstack__machine_announced(stack *s, uintptr_t frame);
void incstack__machine_abandon(stack *s);
int incstack__machine_holds(const stack *s, uintptr_t address, size_t bytes);
bool incstack__machine_is_promised(const object *frame, const object *caller,
				   const struct incstack_top *top);
bool incstack__machine_may_have_called(const object *frame, const struct incstack_top *top);
uintptr_t incstack__machine_open_bytes(const stack *s);
int incstack__machine_more_room(stack *s);
int incstack__machine_broken(const stack *s, size_t most);

/* The common members of both kinds. */
#define INCSTACK__MACHINE_FUNCTIONS \
	.takes_top = incstack__top_is_valid, .sample = incstack__machine_sample, \
	.sample_described = incstack_stack_sample, .frames = incstack__machine_frames, \
	.walk = incstack__machine_walk, .remove_popped = incstack__machine_remove_popped, \
	.remove_popped_at = incstack__machine_remove_popped_at, \
	.passed = incstack__machine_passed, .announced = incstack__machine_announced, \
	.is_live = incstack__machine_is_live, .lift = incstack__machine_lift, \
	.vanished = incstack__machine_vanished, .thin = incstack__machine_thin, \
	.abandon = incstack__machine_abandon, .holds = incstack__machine_holds, \
	.frame_moved = incstack__machine_frame_moved, .moved = incstack__machine_moved, \
	.is_promised = incstack__machine_is_promised, \
	.may_have_called = incstack__machine_may_have_called, \
	.open_bytes = incstack__machine_open_bytes, .more_room = incstack__machine_more_room, \
	.frames_begin = incstack__machine_frames_begin, \
	.frames_next = incstack__machine_frames_next, .broken = incstack__machine_broken

#endif
