/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack heap returns: 200
 * incstack heap does not say: stacks with unknown bounds
 *
 * Contexts that are never resumed, and new ones in their memory with other bounds, as in blocks
 * of malloc. The frames of each lie below those of the previous one.
 */
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "nest.h"

enum { STACK_BYTES = 32 << 10, SHIFT_BYTES = STACK_BYTES - (2 << 10), CONTEXTS = 40 };

static ucontext_t thread, fiber;

static void allocate_below(void)
{
	volatile char room[4 << 10];

	room[0] = 1;
	for (int level = 0; level < 12; level++)
		nest(level, allocate);
	room[1] = room[0];
}

static void leave(void)
{
	nest(3, allocate);
	nest(2, allocate_below);
	swapcontext(&fiber, &thread);
}

static void run(char *memory)
{
	if (getcontext(&fiber) != 0)
		_exit(1);
	fiber.uc_stack.ss_sp = memory;
	fiber.uc_stack.ss_size = STACK_BYTES;
	fiber.uc_link = &thread;
	makecontext(&fiber, (void (*)(void))leave, 0);
	if (swapcontext(&thread, &fiber) != 0)
		_exit(1);
}

int main(void)
{
	const size_t bytes = (CONTEXTS + 1) * STACK_BYTES;
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	for (int i = 0; i < CONTEXTS; i++)
		run(memory + bytes - STACK_BYTES - (size_t)i * SHIFT_BYTES);
	return 0;
}
