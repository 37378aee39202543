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

/* libunwind knows nothing of thunks that were made at run time: behind a thunk the
 * walk starts anew, with the registers of the frame that the thunk stands for. */
static int pass_thunk(unw_cursor_t *cursor, unw_context_t *context, const struct incstack_frame *at)
{
	static const struct {
		unw_regnum_t from;
		int to;
	} saved[] = {{UNW_X86_64_RBX, REG_RBX}, {UNW_X86_64_RBP, REG_RBP},
		     {UNW_X86_64_R12, REG_R12}, {UNW_X86_64_R13, REG_R13},
		     {UNW_X86_64_R14, REG_R14}, {UNW_X86_64_R15, REG_R15}};
	for (size_t i = 0; i < sizeof(saved) / sizeof(saved[0]); i++) {
		unw_word_t value;
		if (unw_get_reg(cursor, saved[i].from, &value) < 0)
			return INCSTACK_EUNWIND;
		context->uc_mcontext.gregs[saved[i].to] = (greg_t)value;
	}
	uintptr_t pc = at->pc;
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)incstack_slot_read(&pc);
	context->uc_mcontext.gregs[REG_RSP] = (greg_t)at->sp;
	return unw_init_local(cursor, context) < 0 ? INCSTACK_EUNWIND : 0;
}

/* Where libunwind guesses, it may step to what cannot be read. */
static int ended(int count)
{
	return count > 0 ? count : INCSTACK_EUNWIND;
}

/* Goes on from the cursor's frame, which is the walk function itself. */
static int walk(unw_cursor_t *cursor, unw_context_t *context, struct incstack_frame *frames,
		int max)
{
	int count = 0;

	while (count < max && unw_step(cursor) > 0) {
		struct incstack_frame frame;

		if (read_frame(cursor, &frame) < 0)
			return ended(count);
		if (incstack__thunk_contains(frame.pc) &&
		    (pass_thunk(cursor, context, &frame) < 0 || read_frame(cursor, &frame) < 0))
			return ended(count);
		if (!frame.pc) /* what the outermost frame of a coroutine returns to */
			break;
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
	return walk(&cursor, &context, frames, max);
}
