/* SPDX-License-Identifier: MIT
 *
 * A context allocates on a stack that is too small for the recorder to write a batch. What
 * is not recorded for that reason is counted.
 *
 * incstack heap loses samples
 * incstack heap returns: 0
 * incstack heap says: 1000 allocations and deallocations were dropped
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 6 << 10, PAGE = 4096, CALLS = 1000 };

static ucontext_t outside;
static ucontext_t inside;

static void allocate(void)
{
	for (int i = 0; i < CALLS; i++) {
		void *volatile block = malloc(32);

		free(block);
	}
}

/* A store below the stack is a fault. */
int main(void)
{
	void *volatile block = malloc(32);
	char *memory = mmap(NULL, PAGE + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == NULL || memory == MAP_FAILED ||
	    mprotect(memory + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE) != 0 ||
	    getcontext(&inside) != 0)
		return 1;
	inside.uc_stack.ss_sp = memory + PAGE;
	inside.uc_stack.ss_size = STACK_BYTES;
	inside.uc_link = &outside;
	makecontext(&inside, allocate, 0);
	free(block);
	return swapcontext(&outside, &inside) == 0 ? 0 : 2;
}
