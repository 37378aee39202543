/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack heap returns: 1000
 *
 * A function allocates, so its return is intercepted. It ends with a tail call of malloc, which
 * then shares its return slot and the barrier in it.
 */
#include <stdlib.h>

enum { ROUNDS = 20000 };

#ifdef __clang__
#define TAIL_CALLS
#define TAIL __attribute__((musttail))
#else
#define TAIL_CALLS __attribute__((optimize("optimize-sibling-calls")))
#define TAIL
#endif
/* Not to be merged, left out or ended by a jump of the compiler's own. */
#define FRAME __attribute__((noinline))
#define BARRIER __asm__ volatile("" ::: "memory")

static FRAME void leaf(size_t bytes)
{
	void *volatile block = malloc(bytes);

	free(block);
	BARRIER;
}

/* It has a frame pointer, so its samples do not share a walk: they would not need a barrier so near. */
static FRAME void above(size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	room[0] = 0;
	leaf(bytes);
	void *volatile block = malloc(bytes);

	free(block);
	BARRIER;
}

static FRAME TAIL_CALLS void *ends_with_malloc(size_t bytes)
{
	above(bytes);
	TAIL return malloc(bytes);
}

int main(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		void *volatile block = ends_with_malloc((size_t)i % 64 + 1);

		if (block == NULL)
			return 1;
		free(block);
	}
	return 0;
}
