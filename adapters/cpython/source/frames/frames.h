/* SPDX-License-Identifier: MIT
 *
 * Where CPython keeps its frames. Each version has a file of its own here, with the same functions:
 *
 *   frames_top          the youngest frame of a thread
 *   frames_walk         describes a frame and returns its caller
 *   frames_next_of      the caller alone, for a walk that shares nothing with frames_walk
 *
 * A frame is described by its code object, by the place of its instruction in it, and by its owner.
 * Nothing here allocates or changes a frame.
 */
#ifndef FRAMES_H
#define FRAMES_H

#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE 1
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>

#include <incstack/heap.h>

#ifdef Py_GIL_DISABLED
#error "incstack needs a CPython with the GIL: this is a free-threaded build"
#endif

/* The kind of a frame is its owner, with these: */
enum {
	/* CPython itself puts it between others: it has no code object of the program. */
	FRAMES_SHIM = 0x1000,
	/* C code has called it: the interpreter's loop began with it. Where there are shims, they tell. */
	FRAMES_ENTRY = 0x2000,
};

#if PY_VERSION_HEX < 0x030b0000
#error "incstack needs CPython 3.11 or newer"
#elif PY_VERSION_HEX < 0x030c0000
#include "frames_3_11.h"
#elif PY_VERSION_HEX < 0x030d0000
#include "frames_3_12.h"
#elif PY_VERSION_HEX < 0x030e0000
#include "frames_3_13.h"
#elif PY_VERSION_HEX < 0x03100000
#include "frames_3_14.h"
#else
#error "incstack does not know the frames of this CPython yet; 3.11 to 3.15 work"
#endif

/* Python's own tracebacks leave such a frame out: it has not reached its first instruction. */
static inline bool frames_is_incomplete(const PyCodeObject *code,
					const struct incstack_heap_frame *f)
{
	return (f->kind & 0xff) != FRAME_OWNED_BY_GENERATOR &&
	       (int32_t)f->position < code->_co_firsttraceable;
}

/* The place of an instruction, in code units from the start of the code. */
static inline uint32_t frames_place(const PyCodeObject *code, const void *instruction)
{
	const ptrdiff_t bytes = (const char *)instruction - code->co_code_adaptive;
	return (uint32_t)(bytes / (ptrdiff_t)sizeof(_Py_CODEUNIT));
}

static inline void frames_describe(struct incstack_heap_frame *f, const void *code,
				   const void *instruction, char owner)
{
	f->function = (uintptr_t)code;
	f->position = frames_place(code, instruction);
	f->kind = (uint16_t)owner;
}

static inline void frames_describe_shim(struct incstack_heap_frame *f)
{
	f->function = 1; /* no address of an object */
	f->kind = FRAMES_SHIM;
}

#endif
