/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack heap returns: 3000
 *
 * Contexts that come and go, always at new addresses. Their first function returns, or they are
 * never resumed; their memory is unmapped, or stays. One context is resumed many times. The
 * recorder must free its records of the others, each of which has mappings.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "nest.h"

enum { STACK_BYTES = 32 << 10, AT_ONCE = 40, ROUNDS = 32, FIRST_ROUNDS = 4 };

static ucontext_t thread, fiber, lasting;

static void deep(void)
{
	for (int level = 0; level < 8; level++)
		nest(level, allocate);
}

static void leave(void)
{
	deep();
	swapcontext(&fiber, &thread);
}

static void last(void)
{
	for (;;) {
		deep();
		swapcontext(&lasting, &thread);
	}
}

static void make(ucontext_t *context, char *memory, void (*function)(void))
{
	if (getcontext(context) != 0)
		_exit(1);
	context->uc_stack.ss_sp = memory;
	context->uc_stack.ss_size = STACK_BYTES;
	context->uc_link = &thread;
	makecontext(context, function, 0);
}

static void enter(ucontext_t *context)
{
	if (swapcontext(&thread, context) != 0)
		_exit(1);
}

static char *map(int number)
{
	char *memory =
		mmap((void *)(0x500000000000u + ((uintptr_t)number << 32)), AT_ONCE * STACK_BYTES,
		     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	return memory;
}

static void come_and_go(int round)
{
	char *memory = map(1 + round);

	for (int i = 0; i < AT_ONCE; i++) {
		make(&fiber, memory + i * STACK_BYTES, round % 2 != 0 ? deep : leave);
		enter(&fiber);
		if (i % 16 == 0)
			enter(&lasting);
	}
	if (round % 4 < 2)
		munmap(memory, AT_ONCE * STACK_BYTES);
}

static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int count = 0;

	for (int c = fgetc(maps); c != EOF; c = fgetc(maps))
		count += c == '\n';
	fclose(maps);
	return count;
}

int main(void)
{
	int before;

	make(&lasting, map(0), last);
	for (int round = 0; round < FIRST_ROUNDS; round++)
		come_and_go(round);
	before = mappings();
	for (int round = FIRST_ROUNDS; round < ROUNDS; round++)
		come_and_go(round);
	if (mappings() > 2 * before)
		fprintf(stderr, "%d mappings, then %d\n", before, mappings());
	return mappings() > 2 * before;
}
