/* SPDX-License-Identifier: MIT
 *
 * incstack heap mode: validate
 * incstack heap varies
 *
 * Coroutines that take turns on one part of the thread's stack, like greenlets: one that stops is
 * copied to the heap, one that continues is copied back to the same addresses. Nothing announces
 * this, and the recorder can recognize the program only by what happens.
 */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nest.h"

enum { COROUTINES = 4, ROUNDS = 150, DEPTH = 25 };

static struct coroutine {
	char *saved;
	size_t bytes;
	char *sp;
	int ended;
} coroutines[COROUTINES];
static int running, next;
static char *base; /* of the shared piece; it ends there */
static char aside[1 << 16];
char *copier_sp; /* copies are made from another stack */
static long sum;
static jmp_buf all_ended;
static unsigned seed = 1;

static int random_below(int n)
{
	seed = seed * 1103515245 + 12345;
	return (int)(seed >> 16) % n;
}

/* Saves the registers, and goes on with those of the coroutine that `copy` returns. */
void take_turns(void);
__asm__(".text\n.globl take_turns\ntake_turns:\n\t.cfi_startproc\n\t"
	"push %rbp\n\t.cfi_adjust_cfa_offset 8\n\tpush %rbx\n\t.cfi_adjust_cfa_offset 8\n\t"
	"push %r12\n\t.cfi_adjust_cfa_offset 8\n\tpush %r13\n\t.cfi_adjust_cfa_offset 8\n\t"
	"push %r14\n\t.cfi_adjust_cfa_offset 8\n\tpush %r15\n\t.cfi_adjust_cfa_offset 8\n\t"
	"mov %rsp, %rdi\n\tmov copier_sp(%rip), %rsp\n\tcall copy\n\tmov %rax, %rsp\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n\t"
	".cfi_endproc\n");
/* Begins on the stack that it is given; does not come back. */
_Noreturn void go(char *sp);
__asm__(".globl go\ngo:\n\tmov %rdi, %rsp\n\t"
	"pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbx\n\tpop %rbp\n\tret\n");

static void choose(void)
{
	do
		next = random_below(COROUTINES);
	while (coroutines[next].ended);
}

static __attribute__((noinline)) int work(int depth)
{
	int result = 1;

	allocate();
	if (depth > 0) {
		result = work(depth - 1) + 1;
	} else {
		choose();
		if (next != running)
			take_turns();
	}
	allocate();
	nest(depth % 3, allocate);
	return result;
}

static void run(void)
{
	int left = 0;

	for (int i = 0; i < ROUNDS; i++)
		sum += work(random_below(DEPTH));
	coroutines[running].ended = 1;
	for (int i = 0; i < COROUTINES; i++)
		left += !coroutines[i].ended;
	if (left == 0)
		longjmp(all_ended, 1);
	choose();
	take_turns();
}

static char *start(void)
{
	uintptr_t *sp = (uintptr_t *)base - 8;

	*--sp = 0;
	*--sp = (uintptr_t)run;
	sp -= 6;
	memset(sp, 0, 6 * sizeof(*sp));
	return (char *)sp;
}

char *copy(char *sp);
char *copy(char *sp)
{
	struct coroutine *old = &coroutines[running];
	struct coroutine *new = &coroutines[next];

	if (!old->ended) {
		old->sp = sp;
		old->bytes = (size_t)(base - sp);
		old->saved = realloc(old->saved, old->bytes);
		memcpy(old->saved, sp, old->bytes);
	}
	running = next;
	if (new->sp == NULL)
		return start();
	memcpy(new->sp, new->saved, new->bytes);
	return new->sp;
}

/* The frames of main and below stay where they are while the piece is used. */
static __attribute__((noinline)) void share_a_piece(void)
{
	volatile char room[64 << 10];

	room[0] = 0;
	base = (char *)((uintptr_t)(room + sizeof(room) / 2) & ~(uintptr_t)15);
	if (setjmp(all_ended) == 0)
		go(start());
}

int main(void)
{
	long expected = 0;

	copier_sp = (char *)((uintptr_t)(aside + sizeof(aside) - 64) & ~(uintptr_t)15);
	share_a_piece();
	seed = 1;
	for (int i = 0; i < COROUTINES; i++)
		expected += coroutines[i].ended * ROUNDS;
	return sum < expected || sum > expected * DEPTH;
}
