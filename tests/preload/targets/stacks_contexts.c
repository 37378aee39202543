/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 *
 * Contexts that allocate. Their stacks lie below and above that of their thread. They move from
 * one thread to another, and some are suspended and never resumed.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 128 << 10, FIBERS = 5, TURNS = 30 };

struct fiber {
	ucontext_t context;
	ucontext_t link;
	void *memory;
	int ended;
};

static struct fiber fibers[FIBERS];

static void yield_at(struct fiber *fiber, int depth);
static void (*volatile again)(struct fiber *, int) = yield_at;

static void yield_at(struct fiber *fiber, int depth)
{
	void *volatile block = malloc(24);

	if (depth > 0)
		again(fiber, depth - 1);
	free(block);
	if (depth == 2 && swapcontext(&fiber->context, &fiber->link) != 0)
		abort();
	free(malloc(8));
}

static void fiber_main(int number)
{
	for (int turn = 0; turn < TURNS; turn++)
		again(&fibers[number], 2 + (turn + number) % 9);
	fibers[number].ended = 1; /* and returns to uc_link */
}

static void make_fiber(int number)
{
	struct fiber *fiber = &fibers[number];

	if (fiber->memory == NULL)
		fiber->memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fiber->memory == MAP_FAILED || getcontext(&fiber->context) != 0)
		abort();
	fiber->ended = 0;
	fiber->context.uc_stack.ss_sp = fiber->memory;
	fiber->context.uc_stack.ss_size = STACK_BYTES;
	fiber->context.uc_link = &fiber->link;
	makecontext(&fiber->context, (void (*)(void))fiber_main, 1, number);
}

static void resume_at(struct fiber *fiber, int depth)
{
	void *volatile block = malloc(40);

	if (depth > 0)
		resume_at(fiber, depth - 1);
	else if (swapcontext(&fiber->link, &fiber->context) != 0)
		abort();
	free(block);
	free(malloc(16));
}

/* Each time it resumes every fiber that has not ended, once. */
static void *resume_all(void *argument)
{
	for (int i = 0; i < FIBERS; i++)
		if (!fibers[i].ended)
			resume_at(&fibers[i], i);
	return argument;
}

static int some_live(void)
{
	for (int i = 0; i < FIBERS; i++)
		if (!fibers[i].ended)
			return 1;
	return 0;
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < FIBERS; i++) {
		make_fiber(i);
		resume_at(&fibers[i], 3);
		make_fiber(i); /* the one that is suspended is gone */
	}
	/* Their turns alternate between this thread and new ones. */
	while (some_live()) {
		resume_all(NULL);
		if (pthread_create(&thread, NULL, resume_all, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			return 1;
	}
	return 0;
}
