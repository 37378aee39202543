/* SPDX-License-Identifier: MIT
 *
 * The frames of CPython 3.13: the thread state points to the youngest one.
 */
#ifndef FRAMES_3_13_H
#define FRAMES_3_13_H

#include <internal/pycore_frame.h>

static inline void frames_describe(struct incstack_heap_frame *f, const void *code,
				   const void *instruction, char owner);
static inline void frames_describe_shim(struct incstack_heap_frame *f);

static inline uintptr_t frames_top(const PyThreadState *state)
{
	return (uintptr_t)state->current_frame;
}

static inline uintptr_t frames_next_of(uintptr_t name)
{
	return (uintptr_t)((const _PyInterpreterFrame *)name)->previous;
}

static inline uintptr_t frames_walk(uintptr_t name, struct incstack_heap_frame *f)
{
	const _PyInterpreterFrame *here = (const _PyInterpreterFrame *)name;
	if (here->owner == FRAME_OWNED_BY_CSTACK)
		frames_describe_shim(f);
	else
		frames_describe(f, here->f_executable, here->instr_ptr, here->owner);
	return (uintptr_t)here->previous;
}

#endif
