/* SPDX-License-Identifier: MIT
 *
 * incstack heap mode: validate
 *
 * Continuations that are called more than once, as Ruby's callcc makes them: a part of the
 * stack is copied away, and back again several times, so the same frames return several times.
 * The function that does this has the name by which the recorder recognizes Ruby.
 */
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include "nest.h"

enum { DEPTH = 30, CALLS = 5, ROUNDS = 40 };

static jmp_buf captured;
static char *copy, *low, *high;
static int calls;
static long sum;

void ruby_Init_Continuation_body(void);
__attribute__((noinline)) void ruby_Init_Continuation_body(void)
{
	copy = malloc(1 << 20);
	allocate();
}

/* Goes down until its own frame is out of the way. */
static __attribute__((noinline, noreturn)) void call_continuation(int pad)
{
	volatile char room[4096];

	room[0] = (char)pad;
	if ((char *)room + sizeof(room) > low - 1024)
		call_continuation(pad + 1);
	memcpy(low, copy, (size_t)(high - low));
	longjmp(captured, 1);
}

static __attribute__((noinline)) void capture(void)
{
	low = (char *)__builtin_frame_address(0) - 512;
	if (setjmp(captured) == 0)
		memcpy(copy, low, (size_t)(high - low));
}

static __attribute__((noinline)) int descend(int depth)
{
	int result = 1;

	allocate();
	if (depth > 0) {
		result = descend(depth - 1) + 1;
	} else {
		capture();
		calls++;
		allocate();
	}
	allocate();
	sum += result;
	return result;
}

static __attribute__((noinline)) void one_round(void)
{
	char here[64];

	high = __builtin_frame_address(0);
	here[0] = 0;
	__asm__ volatile("" ::"r"(here) : "memory");
	calls = 0;
	sum += descend(DEPTH);
	allocate();
	if (calls < CALLS)
		call_continuation(0);
}

int main(void)
{
	for (int i = 0; i < 100; i++)
		nest(i % 9, allocate);
	ruby_Init_Continuation_body();
	for (int i = 0; i < ROUNDS; i++)
		one_round();
	free(copy);
	return sum != (long)ROUNDS * CALLS * ((DEPTH + 1) * (DEPTH + 2) / 2 + DEPTH + 1);
}
