/* SPDX-License-Identifier: MIT
 *
 * The frames of CPython 3.11. A struct in the C frame of the interpreter's loop points to the youngest one.
 */
#ifndef FRAMES_3_11_H
#define FRAMES_3_11_H

#include <internal/pycore_frame.h>

static inline void frames_describe(struct incstack_heap_frame *f, const void *code,
				   const void *instruction, char owner);

static inline uintptr_t frames_top(const PyThreadState *state)
{
	return state->cframe ? (uintptr_t)state->cframe->current_frame : 0;
}

static inline uintptr_t frames_next_of(uintptr_t name)
{
	return (uintptr_t)((const _PyInterpreterFrame *)name)->previous;
}

static inline uintptr_t frames_walk(uintptr_t name, struct incstack_heap_frame *f)
{
	const _PyInterpreterFrame *here = (const _PyInterpreterFrame *)name;
	frames_describe(f, here->f_code, here->prev_instr, here->owner);
	if (here->is_entry)
		f->kind |= FRAMES_ENTRY;
	return (uintptr_t)here->previous;
}

#endif
