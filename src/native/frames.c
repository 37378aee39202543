/* SPDX-License-Identifier: MIT
 *
 * Walks with the frame iterator whose top need not be given: it is the caller, or the code that a
 * signal interrupted.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <ucontext.h>

#include <incstack/native.h>

static int begin(struct incstack_frames *frames, struct incstack_runtime *runtime,
		 struct incstack_stack *stack, const struct incstack_top *top)
{
	return stack ? incstack_frames_begin_stack(frames, stack, top)
		     : incstack_frames_begin(frames, runtime, 0, 0, top);
}

/* The frame pointer leads to the caller's frame; see incstack_native_sample. */
__attribute__((noinline)) int incstack_native_frames_begin(struct incstack_frames *frames,
							   struct incstack_runtime *runtime,
							   struct incstack_stack *stack)
{
	const uintptr_t *frame = __builtin_frame_address(0);
	const struct incstack_top top = {
		.pc = frame[1],
		.sp = (uintptr_t)(frame + 2),
		.fp = frame[0],
	};

	return begin(frames, runtime, stack, &top);
}

int incstack_native_frames_begin_interrupted(struct incstack_frames *frames,
					     struct incstack_runtime *runtime,
					     struct incstack_stack *stack, const void *ucontext)
{
	const ucontext_t *context = ucontext;
	struct incstack_top top = {0};

	if (context) {
		top.pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
		top.sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
		top.fp = (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
		top.flags = INCSTACK_TOP_EXACT | INCSTACK_TOP_INTERRUPTED;
	}
	return begin(frames, runtime, stack, &top);
}
