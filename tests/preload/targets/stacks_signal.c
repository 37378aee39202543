/* SPDX-License-Identifier: MIT
 *
 * Handlers on a signal stack that allocate and return, or jump out. The program raises the signal,
 * or a timer does at any instruction, also of the recorder.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "nest.h"

static sigjmp_buf jump;
static volatile sig_atomic_t may_jump;
static volatile long jumps;

static void returning(int number)
{
	(void)number;
	nest(4, allocate);
}

static void jumping(int number)
{
	(void)number;
	nest(4, allocate);
	siglongjmp(jump, 1);
}

/* Does not jump out of an allocation, which would harm the allocator under any tracer, but out of
 * anything that runs between allocations, including returns. */
static void timed(int number)
{
	(void)number;
	if (!may_jump)
		return;
	may_jump = 0;
	siglongjmp(jump, 1);
}

static void set(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};

	if (sigaction(number, &action, NULL) != 0)
		exit(1);
}

static void raise_signal(void)
{
	allocate();
	raise(SIGUSR1);
	allocate();
}

/* Returns through barriers, again and again, with the jump allowed there only. */
static void climb(int level)
{
	allocate();
	if (level > 0)
		climb(level - 1);
	allocate();
	may_jump = 1;
	__asm__ volatile("" ::: "memory");
}

static void climb_guarded(int level)
{
	may_jump = 0;
	climb(level);
}

static void by_timer(void)
{
	const struct itimerval often = {{0, 300}, {0, 300}};
	const struct itimerval off = {{0, 0}, {0, 0}};
	volatile int i;

	set(SIGALRM, timed);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < 3000; i++) {
		if (sigsetjmp(jump, 1) != 0) {
			jumps++;
			continue;
		}
		may_jump = 0;
		nest(5 + i % 10, allocate);
		climb_guarded(0);
		may_jump = 0;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	may_jump = 0;
}

int main(void)
{
	static char memory[1 << 16];
	const stack_t alternate = {.ss_sp = memory, .ss_size = sizeof(memory)};
	volatile int i;

	if (sigaltstack(&alternate, NULL) != 0)
		return 2;
	set(SIGUSR1, returning);
	for (i = 0; i < 100; i++)
		nest(5 + i % 10, raise_signal);
	set(SIGUSR1, jumping);
	for (i = 0; i < 100; i++) {
		if (sigsetjmp(jump, 1) == 0)
			nest(5 + i % 10, raise_signal);
		else
			jumps++;
		nest(7, allocate);
	}
	if (jumps != 100)
		return 3;
	by_timer();
	nest(12, allocate);
	return 0;
}
