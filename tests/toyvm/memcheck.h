/* SPDX-License-Identifier: MIT
 *
 * Tells valgrind's memcheck what it cannot see. Memcheck follows the stack pointer: memory that it
 * passes downwards is new and undefined, memory that it passes upwards is dead. Here C code on
 * another stack pushes and pops frames of a fiber, so it reports how far the fiber's stack
 * reaches. These are the only annotations of the VM.
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

/* The bytes below the stack pointer that are in use, by the ABI and for memcheck. */
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
