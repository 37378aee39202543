/* SPDX-License-Identifier: MIT
 *
 * What valgrind's memcheck cannot see. It follows the stack pointer: what that
 * passes downward is new and undefined, what it passes upward is dead. Here C code,
 * on another stack, builds and pops frames of a fiber, so it says how far the
 * fiber's stack reaches then. These are the only annotations of the VM.
 */
#ifndef TOYVM_MEMCHECK_H
#define TOYVM_MEMCHECK_H

#include <stdint.h>

#ifdef TOYVM_MEMCHECK
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_NOACCESS(from, bytes) ((void)(from), (void)(bytes))
#define VALGRIND_MAKE_MEM_UNDEFINED(from, bytes) ((void)(from), (void)(bytes))
#endif

/* Below the stack pointer so much is alive, by the ABI and for memcheck. */
enum { RED_ZONE = 128 };

/* The stack ended at `from` and now ends at `to`. */
static inline void memcheck_stack(uintptr_t from, uintptr_t to)
{
	if (to < from)
		(void)VALGRIND_MAKE_MEM_UNDEFINED(to - RED_ZONE, from - to);
	else if (from < to)
		(void)VALGRIND_MAKE_MEM_NOACCESS(from - RED_ZONE, to - from);
}

/* Fresh memory from `low` is a stack that ends at `sp`. */
static inline void memcheck_new_stack(uintptr_t low, uintptr_t sp)
{
	(void)VALGRIND_MAKE_MEM_NOACCESS(low, sp - RED_ZONE - low);
}

#endif
