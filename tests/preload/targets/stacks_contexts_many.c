/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack heap returns: 6000
 *
 * Contexts that come and go, many at a time. Each allocates below many frames and ends; its
 * memory is unmapped, or used for a larger context. The recorder must not run out of records:
 * the last contexts have barriers like the first ones.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "nest.h"

enum { STACK_BYTES = 32 << 10, AT_ONCE = 400, ROUNDS = 8 };

static ucontext_t thread, fibers[AT_ONCE];

static void deep(void)
{
	for (int level = 0; level < 8; level++)
		nest(level, allocate);
}

static void make(ucontext_t *fiber, char *memory, size_t bytes)
{
	if (getcontext(fiber) != 0)
		_exit(1);
	fiber->uc_stack.ss_sp = memory;
	fiber->uc_stack.ss_size = bytes;
	fiber->uc_link = &thread;
	makecontext(fiber, (void (*)(void))deep, 0);
}

static void run(ucontext_t *fiber)
{
	if (swapcontext(&thread, fiber) != 0)
		_exit(1);
}

int main(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		/* Never where another round's were, as an allocator of stacks may do it. */
		char *memory = mmap((void *)(0x500000000000u + ((uintptr_t)round << 32)),
				    AT_ONCE * STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			return 1;
		for (int i = 0; i < AT_ONCE; i++)
			make(&fibers[i], memory + i * STACK_BYTES, STACK_BYTES);
		for (int i = 0; i < AT_ONCE; i++)
			run(&fibers[i]);
		make(&fibers[0], memory + STACK_BYTES, 2 * STACK_BYTES);
		run(&fibers[0]);
		munmap(memory, AT_ONCE * STACK_BYTES);
	}
	return 0;
}
