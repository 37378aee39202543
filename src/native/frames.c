/* SPDX-License-Identifier: MIT
 *
 * Walks with the frame iterator whose top need not be given: it is the caller, or the code that a
 * signal interrupted.
 */
#include <incstack/native.h>

#include "native/native.h"

static int begin(struct incstack_frames *frames, struct incstack_runtime *runtime,
		 struct incstack_stack *stack, const struct incstack_top *top)
{
	return stack ? incstack_frames_begin_stack(frames, stack, top)
		     : incstack_frames_begin(frames, runtime, 0, 0, top);
}

__attribute__((noinline)) int incstack_native_frames_begin(struct incstack_frames *frames,
							   struct incstack_runtime *runtime,
							   struct incstack_stack *stack)
{
	const struct incstack_top top = incstack__native_caller_top(__builtin_frame_address(0));

	return begin(frames, runtime, stack, &top);
}

int incstack_native_frames_begin_interrupted(struct incstack_frames *frames,
					     struct incstack_runtime *runtime,
					     struct incstack_stack *stack, const void *ucontext)
{
	struct incstack_top top = {0};

	if (ucontext)
		top = incstack__native_interrupted_top(ucontext);
	return begin(frames, runtime, stack, &top);
}
