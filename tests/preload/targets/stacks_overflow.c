/* SPDX-License-Identifier: MIT
 *
 * A thread allocates until its stack overflows. The handler of the fault runs on an alternate stack
 * and jumps back, again and again. The fault may come anywhere in the recorder, except where
 * signals are blocked: the kernel ends a process whose fault is blocked.
 *
 * incstack heap loses samples
 * incstack heap traces: 4000
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

enum { ROUNDS = 40, STACK_BYTES = 512 << 10, FRAME_BYTES = 4000, HANDLER_BYTES = 64 << 10 };

static sigjmp_buf start;
static volatile int overflows;

static void jump_back(int signal)
{
	(void)signal;
	overflows++;
	siglongjmp(start, 1);
}

static __attribute__((noinline)) int recurse(int level)
{
	volatile char frame[FRAME_BYTES];
	void *volatile block = malloc(32);
	int sum;

	if (overflows == ROUNDS) /* never: the rounds are over */
		return 0;
	frame[level % FRAME_BYTES] = (char)level;
	sum = recurse(level + 1) + frame[level % FRAME_BYTES];
	free(block);
	return sum;
}

static void *overflow(void *handler_stack)
{
	const stack_t stack = {.ss_sp = handler_stack, .ss_size = HANDLER_BYTES};

	if (sigaltstack(&stack, NULL) != 0)
		return NULL;
	for (volatile int i = 0; i < ROUNDS; i++)
		if (sigsetjmp(start, 1) == 0)
			recurse(0);
	return handler_stack;
}

int main(void)
{
	const struct sigaction action = {.sa_handler = jump_back, .sa_flags = SA_ONSTACK};
	pthread_attr_t attributes;
	pthread_t thread;
	void *done = NULL;

	if (sigaction(SIGSEGV, &action, NULL) != 0 || pthread_attr_init(&attributes) != 0 ||
	    pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0 ||
	    pthread_create(&thread, &attributes, overflow, malloc(HANDLER_BYTES)) != 0)
		return 1;
	pthread_join(thread, &done);
	return done != NULL && overflows == ROUNDS ? 0 : 2;
}
