/* SPDX-License-Identifier: MIT
 *
 * incstack heap walks fully
 * incstack heap traces: 2000
 * incstack heap says: the program also runs on stacks with unknown bounds
 *
 * A signal handler allocates on a signal stack that has room for its own calls, but not for a walk by
 * libunwind. Below it is no memory.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HALF = 1 << 19, ROUNDS = 10, CALLS = 200, ROOM = 4500 };

static int handled;

static __attribute__((noinline)) void allocate(int depth)
{
	if (depth > 0) {
		allocate(depth - 1);
		__asm__ volatile("");
		return;
	}
	for (int i = 0; i < CALLS; i++) {
		void *volatile block = malloc(20);

		free(block);
	}
}

static void handle(int number)
{
	(void)number;
	allocate(4);
	handled++;
}

int main(void)
{
	const size_t bytes = ((size_t)sysconf(_SC_MINSIGSTKSZ) + ROOM) & ~(size_t)63;
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	char *memory =
		mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t stack = {.ss_sp = memory + HALF, .ss_size = bytes};

	free(malloc(10)); /* the handler's first call must not bind the function */
	if (memory == MAP_FAILED || mprotect(memory, HALF, PROT_NONE) != 0 ||
	    sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		raise(SIGUSR1);
	return handled == ROUNDS ? 0 : 2;
}
