/* SPDX-License-Identifier: MIT
 *
 * The full walk with libunwind: slow, and the reference that incremental traces
 * are compared with. It shares nothing with the rules but libunwind's tables.
 */
#define UNW_LOCAL_ONLY
#include <stddef.h>

#include <libunwind.h>

#include <incstack/native.h>

#include "native.h"

static int read_frame(unw_cursor_t *cursor, struct incstack_frame *frame)
{
	unw_word_t pc;
	unw_word_t sp;
	unw_word_t fp;

	if (unw_get_reg(cursor, UNW_REG_IP, &pc) < 0 || unw_get_reg(cursor, UNW_REG_SP, &sp) < 0 ||
	    unw_get_reg(cursor, UNW_X86_64_RBP, &fp) < 0)
		return INCSTACK_EUNWIND;
	frame->pc = pc;
	frame->sp = sp;
	frame->fp = fp;
	/* libunwind 1.6 says it of the frame behind the kernel's: the interrupted. */
	frame->flags = unw_is_signal_frame(cursor) > 0 ? INCSTACK_FRAME_EXACT : 0;
	frame->reserved = 0;
	return 0;
}

/* Goes on from the cursor's frame, which is the walk function itself. */
static int walk(unw_cursor_t *cursor, struct incstack_frame *frames, int max)
{
	int count = 0;

	while (count < max && unw_step(cursor) > 0) {
		struct incstack_frame frame;

		if (read_frame(cursor, &frame) < 0)
			return INCSTACK_EUNWIND;
		/* Where a thunk stands for a return address, libunwind sees one more
		 * frame; the frame after it is a caller like any other. */
		if (incstack__thunk_contains(frame.pc))
			continue;
		if (count > 0 && frame.flags & INCSTACK_FRAME_EXACT)
			frames[count - 1].flags |= INCSTACK_FRAME_SIGNAL;
		frames[count++] = frame;
	}
	return count;
}

int incstack_native_walk(struct incstack_frame *frames, int max)
{
	unw_context_t context;
	unw_cursor_t cursor;

	if (!frames || max <= 0)
		return INCSTACK_EINVAL;
	if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) < 0)
		return INCSTACK_EUNWIND;
	return walk(&cursor, frames, max);
}
