/* SPDX-License-Identifier: MIT
 *
 * A handler allocates after each instruction of the program, and of the returns that are intercepted, but not
 * within malloc or free. Its own returns are intercepted, too. What it has interrupted must still be
 * served, and its traces must be right.
 * incstack heap traces: 3000
 * incstack heap loses samples
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 12, DEPTH = 9 };
static volatile int steps; /* the handler allocates */
static volatile long handled, mallocs;

/* The trap comes after each instruction that begins with the flag. While the flags are on the stack, the
 * stack pointer is not where the function's table says. */
__attribute__((noinline)) static void step_on(void)
{
	steps = 1;
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

__attribute__((noinline)) static void step_off(void)
{
	steps = 0;
	__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

__attribute__((noinline)) static int descend(int depth)
{
	int result = 0;

	step_off();
	void *block = malloc(10 + (size_t)depth);
	mallocs++;
	step_on();
	if (depth > 0)
		result = descend(depth - 1) + 1;
	step_off();
	free(block);
	step_on();
	return result;
}

__attribute__((noinline)) static int descend_in_handler(int depth)
{
	void *volatile block = malloc(100 + (size_t)depth);
	mallocs++;
	const int result = depth > 0 ? descend_in_handler(depth - 1) + 1 : 0;

	free(block);
	return result;
}

static void on_instruction(int number)
{
	(void)number;
	if (steps)
		descend_in_handler((int)(handled++ % 4));
}

int main(void)
{
	const struct sigaction action = {.sa_handler = on_instruction};
	int sum = 0;

	sigaction(SIGTRAP, &action, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		sum += descend(DEPTH - i % 3);
		step_off();
	}
	printf("mallocs %ld\n", mallocs);
	return sum == ROUNDS * (DEPTH - 1) && handled > 1000 && mallocs > handled ? 0 : 1;
}
