/* SPDX-License-Identifier: MIT
 *
 * incstack heap walks fully
 * incstack heap varies
 *
 * Threads leave frames by jumps that nobody announces, and then switch to the stack of a coroutine by
 * instructions of their own. On that stack they free what they have allocated on the other one, until
 * a batch is written. The traces of the stack that was left must not get callers from dead memory.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

__asm__(".text\n"
	".type switch_stacks, @function\n"
	"switch_stacks:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n"
	"	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov (%rsi), %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n"
	"	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n"
	".size switch_stacks, . - switch_stacks\n");
void switch_stacks(void **from, void **to);

struct coroutine {
	void *there, *here; /* stack pointers while the other stack is in use */
	int left;
};

static __thread struct coroutine *current;

__attribute__((noinline)) static void go_down(int frames, void **before)
{
	char local[40];
	void *volatile block = malloc(25 + (size_t)frames);

	free(block);
	memset(local, frames, sizeof(local));
	__asm__ volatile("" : : "r"(local) : "memory");
	if (frames > 0)
		go_down(frames - 1, before);
	else if (before)
		__builtin_longjmp(before, 1);
	__asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) static void leave_frames(int frames)
{
	void *before[5];

	if (__builtin_setjmp(before) == 0)
		go_down(frames, before);
	__asm__ volatile("" : : : "memory"); /* no tail call: the jump comes back to this frame */
}

/* Overwrites the memory of the frames that were left, and switches from there. */
__attribute__((noinline)) static void cover(int frames, void (*then)(void))
{
	char local[150];

	memset(local, 0x41, sizeof(local));
	__asm__ volatile("" : : "r"(local) : "memory");
	if (frames > 0)
		cover(frames - 1, then);
	else
		then();
	__asm__ volatile("" : : : "memory");
}

static void go_there(void)
{
	switch_stacks(&current->here, &current->there);
}

static void go_back(void)
{
	switch_stacks(&current->there, &current->here);
}

static void run_there(void)
{
	for (;;) {
		go_down(6, NULL);
		leave_frames(20);
		cover(3, go_back);
		if (current->left-- == 0)
			exit(0);
	}
}

static void make_coroutine(int times)
{
	enum { BYTES = 64 << 10 };
	char *stack = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void **top = (void **)(stack + BYTES) - 2;

	current = calloc(1, sizeof(*current));
	if (stack == MAP_FAILED || current == NULL)
		exit(1);
	*--top = NULL;
	*--top = (void *)run_there;
	current->there = top - 6; /* the registers that a switch restores */
	current->left = times;
}

static void run_here(void)
{
	go_down(12, NULL);
	for (;;) {
		go_down(8, NULL);
		leave_frames(40);
		cover(4, go_there);
	}
}

static void *run(void *argument)
{
	make_coroutine(1 << 30);
	run_here();
	return argument;
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread, NULL, run, NULL) != 0)
			return 1;
	make_coroutine(400);
	run_here();
}
