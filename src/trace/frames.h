/* SPDX-License-Identifier: MIT
 *
 * The frame iterator over machine stacks, and what the other kinds share with it.
 */
#ifndef INCSTACK__FRAMES_H
#define INCSTACK__FRAMES_H

#include <incstack/frames.h>

int incstack__machine_frames_begin(struct incstack_frames *frames, const struct incstack_top *top);
int incstack__machine_frames_next(struct incstack_frames *frames);
int incstack__frames_start(struct incstack_frames *frames, const struct incstack_frame *first,
			   uintptr_t sp, int more);
int incstack__frames_refuse(struct incstack_frames *frames);

#endif
