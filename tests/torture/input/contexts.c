/* SPDX-License-Identifier: MIT
 *
 * Contexts of swapcontext that come and go, switch at several depths, and end in the middle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { COUNT = 20, STACK = 1 << 16 };

static ucontext_t main_context, contexts[COUNT];
static long sum;

__attribute__((noinline)) static int deep(int n, int self)
{
	void *block = malloc((size_t)n + 1);
	int result = 0;

	if (n > 0)
		result = deep(n - 1, self) + 1;
	else
		swapcontext(&contexts[self], &main_context);
	free(block);
	return result;
}

static void body(int self)
{
	for (int i = 0; i < 5; i++)
		sum += deep((self + i * 3) % 25, self);
}

int main(int argc, char **argv)
{
	const int rounds = atoi(argv[argc - 1]) * 5;

	for (int round = 0; round < rounds; round++) {
		void *stacks[COUNT];

		for (int i = 0; i < COUNT; i++) {
			stacks[i] = malloc(STACK);
			getcontext(&contexts[i]);
			contexts[i].uc_stack.ss_sp = stacks[i];
			contexts[i].uc_stack.ss_size = STACK;
			contexts[i].uc_link = &main_context;
			makecontext(&contexts[i], (void (*)(void))body, 1, i);
		}
		/* The last ones are given up before they end. */
		for (int step = 0; step < 6; step++)
			for (int i = 0; i < COUNT - (step > 3 ? 5 : 0); i++)
				if (step < 6)
					swapcontext(&main_context, &contexts[i]);
		for (int i = 0; i < COUNT; i++)
			free(stacks[i]);
	}
	printf("%ld\n", sum);
	return 0;
}
