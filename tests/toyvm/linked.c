/* SPDX-License-Identifier: MIT
 *
 * Fibers whose frames are a chain on the heap, with return barriers of the VM's
 * own: a flag per frame. A frame has the layout of frames on a machine stack,
 * so the collector and the VM's walk need not tell them apart. The name of a frame is its frame
 * pointer. These fibers are interpreted.
 */
#include <stdlib.h>
#include <string.h>

#include "vm.h"

/* Two words above the frame pointer, behind the address that is returned to. */
enum { FRAME_ARMED = 2, LINKED_DEPTH_MAX = 60000 };

static char *block_of(uintptr_t fp)
{
	return (char *)fp - frame_bytes(frame_method(fp));
}

void linked_begin(struct fiber *f)
{
	f->fp = (uintptr_t)f->base;
	f->resume = stubs.linked_call;
}

/* Returns null if the chain is too deep. */
uintptr_t linked_new(struct fiber *f, const struct method *m)
{
	if (f->shadow - f->shadow_base > LINKED_DEPTH_MAX) {
		fiber_throw(f, EXCEPTION_DEPTH);
		return 0;
	}
	char *block = malloc(frame_bytes(m) + (FRAME_ARMED + 1) * sizeof(value));
	uintptr_t fp = (uintptr_t)block + frame_bytes(m);
	*frame_word(fp, 1) = f->pc;
	*frame_word(fp, FRAME_ARMED) = 0;
	return fp;
}

bool linked_barrier(uintptr_t fp)
{
	return *frame_word(*frame_word(fp, 0), FRAME_ARMED) != 0;
}

/* Announces that the caller is about to run again or to be popped. Its position is still that of
 * the call. */
static void tell(struct fiber *f)
{
	value *armed = frame_word(f->fp, FRAME_ARMED);
	if (!*armed)
		return;
	*armed = 0;
	if (incstack_stack_returned(f->stack, f->fp))
		COUNT(mismatches);
	COUNT(linked_returns);
}

static void pop(struct fiber *f)
{
	char *block = block_of(f->fp);
	f->fp = *frame_word(f->fp, 0);
	free(block);
}

void linked_pop(struct fiber *f)
{
	pop(f);
	if (!BUG(BUG_RETURN_UNTOLD))
		tell(f);
}

/* Pops the frames down to fp for an exception, and announces each one. */
void linked_unwind(struct fiber *f, uintptr_t fp)
{
	while (f->fp != fp) {
		pop(f);
		if (!BUG(BUG_NO_UNWINDING))
			tell(f);
	}
}

struct fiber *toy_linked_call(struct fiber *f)
{
	f->callee = f->vm->program->methods[f->callee->id];
	if (f->callee->native)
		return toy_native(f);
	return push_frame(f) ? toy_interpret(f) : throw_from_call(f);
}

/* Pops the youngest frame. Its caller continues at pc. */
struct fiber *linked_return(struct fiber *f, uintptr_t pc)
{
	if (pc == stubs.base)
		return toy_fiber_end(f);
	f->resume = pc == stubs.called_back ? stubs.leave : stubs.linked_returned;
	return f;
}

/* Moves one of the youngest frames. */
void linked_move(struct fiber *f)
{
	value *link = (value *)&f->fp;
	for (uint32_t n = random_below(&f->thread->random, 8); n > 0; n--)
		if (*frame_word(*link, 0) != (value)f->base)
			link = frame_word(*link, 0);
	uintptr_t old = *link, below = frame_bytes(frame_method(old));
	size_t bytes = below + (FRAME_ARMED + 1) * sizeof(value);
	char *from = block_of(old), *to = malloc(bytes);
	if (*frame_word(old, FRAME_ARMED))
		COUNT(moved);
	memcpy(to, from, bytes);
	*link = (uintptr_t)to + below;
	if (!BUG(BUG_STACK_MOVE_UNTOLD) && incstack_stack_frame_moved(f->stack, old, *link))
		COUNT(mismatches);
	free(from);
}

/* ---- what the library asks ------------------------------------------------------ */

int linked_caller(void *context, void *identity, struct incstack_frame *frame)
{
	const struct fiber *f = identity;
	(void)context;
	if (frame->sp == (uintptr_t)f->base)
		return 0;
	frame->pc = *frame_word(frame->sp, 1);
	frame->sp = *frame_word(frame->sp, 0);
	if (!BUG(BUG_DECODED_LATE))
		frame->flags |= INCSTACK_FRAME_DECODE_NOW;
	if (*frame_word(frame->sp, FRAME_ARMED))
		frame->flags |= INCSTACK_FRAME_ARMED;
	return 1;
}

/* A flag that is set or cleared twice is a mistake of the library. */
static void set_armed(uintptr_t frame, value armed)
{
	if (*frame_word(frame, FRAME_ARMED) == armed)
		COUNT(mismatches);
	*frame_word(frame, FRAME_ARMED) = armed;
}

int linked_arm(void *context, void *identity, uintptr_t frame)
{
	const struct fiber *f = identity;
	const uint32_t arms = f->vm->schedule.arms;
	(void)context;
	if (arms && random_below(&f->thread->random, arms) == 0) {
		COUNT(no_arm);
		return INCSTACK_EUNWIND;
	}
	set_armed(frame, 1);
	return 0;
}

void linked_disarm(void *context, void *identity, uintptr_t frame)
{
	(void)context;
	(void)identity;
	set_armed(frame, 0);
}
