/* SPDX-License-Identifier: MIT
 *
 * What is written in the language of the processor and must be inlined.
 */
#ifndef INCSTACK__MACHINE_H
#define INCSTACK__MACHINE_H

#include <stdint.h>

static inline uintptr_t stack_pointer(void)
{
	uintptr_t sp;
	__asm__ volatile("movq %%rsp, %0" : "=r"(sp));
	return sp;
}

/* Tells the processor that a loop waits. */
static inline void machine_pause(void)
{
	__builtin_ia32_pause();
}

#endif
