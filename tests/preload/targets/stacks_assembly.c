/* SPDX-License-Identifier: MIT
 *
 * incstack heap walks fully: on stacks that nobody announced
 * incstack heap truncates at most: 0
 *
 * Coroutines that switch stacks by their own instructions, without notice, as in Ruby and
 * Boost.Context. The outermost frame of each returns to address 0.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "nest.h"

enum { FIBERS = 4, STACK_BYTES = 64 << 10, ROUNDS = 300 };

/* Saves what a call must keep on the stack of `from`, and goes on where `to` stopped. */
void switch_stack(uintptr_t **from, uintptr_t *to);
__asm__(".text\n"
	".type switch_stack, @function\n"
	"switch_stack:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size switch_stack, . - switch_stack\n");

static uintptr_t *fibers[FIBERS], *thread;
static int current;

static void leave(void)
{
	allocate();
	switch_stack(&fibers[current], thread);
	allocate();
}

static void fiber_main(void)
{
	for (int round = 0;; round++)
		nest(round % 7, leave);
}

static uintptr_t *make_fiber(void)
{
	uintptr_t *memory =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t *top = memory + STACK_BYTES / sizeof(*memory);

	if (memory == MAP_FAILED)
		abort();
	*--top = 0; /* where fiber_main returns to */
	*--top = (uintptr_t)fiber_main;
	return top - 6; /* the registers */
}

static void enter(void)
{
	allocate();
	switch_stack(&thread, fibers[current]);
	allocate();
}

int main(void)
{
	for (int i = 0; i < FIBERS; i++)
		fibers[i] = make_fiber();
	for (int round = 0; round < ROUNDS; round++)
		for (current = 0; current < FIBERS; current++)
			nest((round + current) % 11, enter);
	return 0;
}
