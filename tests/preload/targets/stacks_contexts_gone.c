/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack heap returns: 900
 *
 * Contexts whose memory is unmapped while they are suspended; they were left by swapcontext or by
 * a jump. One forks, and one ends the process. Only contexts allocate below many frames.
 */
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "nest.h"

enum { STACK_BYTES = 128 << 10, ROUNDS = 60 };

static ucontext_t thread, fiber;
static jmp_buf jump;

static void swap_out(void)
{
	allocate();
	swapcontext(&fiber, &thread);
	allocate();
}

static void jump_out(void)
{
	allocate();
	_longjmp(jump, 1);
}

static void fork_child(void)
{
	int status;
	const pid_t child = fork();

	allocate();
	if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
		_exit(1);
	if (child == 0)
		_exit(0);
}

static void end_process(void)
{
	allocate();
	exit(0);
}

/* Makes a context that does it under many frames, and runs it. Returns its memory. */
static void *run(void (*action)(void))
{
	char *memory =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || getcontext(&fiber) != 0)
		_exit(1);
	fiber.uc_stack.ss_sp = memory;
	fiber.uc_stack.ss_size = STACK_BYTES;
	fiber.uc_link = &thread;
	makecontext(&fiber, (void (*)(void))action, 0);
	if (_setjmp(jump) == 0 && swapcontext(&thread, &fiber) != 0)
		_exit(1);
	return memory;
}

static void swap_deep(void)
{
	for (int level = 0; level < 12; level++)
		nest(level, allocate);
	nest(12, swap_out);
}

static void jump_deep(void)
{
	for (int level = 0; level < 12; level++)
		nest(level, allocate);
	nest(12, jump_out);
}

static void fork_deep(void)
{
	nest(9, fork_child);
	nest(12, allocate);
}

static void end_deep(void)
{
	nest(9, end_process);
}

int main(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		munmap(run(swap_deep), STACK_BYTES);
		run(swap_deep); /* stays */
		munmap(run(jump_deep), STACK_BYTES);
		if (round % 20 == 0)
			munmap(run(fork_deep), STACK_BYTES);
	}
	run(end_deep);
	return 1;
}
