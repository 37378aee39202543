/* SPDX-License-Identifier: MIT
 *
 * incstack heap loses samples: those that a jump ends
 * incstack heap traces: 100000
 *
 * Jumps out of the recorder at any of its instructions. A signal handler checks whether it has
 * interrupted the recorder, and jumps only then (no program may jump out of malloc itself). The
 * thread must still be recorded afterwards.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

enum { ROUNDS = 20000, WANTED = 50 };

static sigjmp_buf jump;
static uintptr_t low, high; /* of the recorder's code */
static volatile sig_atomic_t armed;
static volatile int jumps;

/* Its code has more than one mapping, because writable pages of thunks lie between. */
static void find_recorder(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	unsigned long from, to;
	char mode[8];

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
		if (strstr(line, "libincstack_recorder") != NULL &&
		    sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 && mode[2] == 'x') {
			low = low != 0 ? low : from;
			high = to;
		}
	if (maps != NULL)
		fclose(maps);
}

static void tick(int number, siginfo_t *info, void *context)
{
	const ucontext_t *at = context;
	const uintptr_t pc = (uintptr_t)at->uc_mcontext.gregs[REG_RIP];

	(void)number;
	(void)info;
	if (!armed || pc < low || pc >= high)
		return;
	armed = 0;
	jumps++;
	siglongjmp(jump, 1);
}

static void nest(int level);
static void (*volatile again)(int) = nest;

static void nest(int level)
{
	void *volatile block = malloc(16);

	if (level > 0)
		again(level - 1);
	else
		armed = 1;
	free(block);
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	const struct itimerval often = {{0, 200}, {0, 200}};
	const struct itimerval off = {{0, 0}, {0, 0}};
	const struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO};
	volatile int i;

	find_recorder();
	if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &often, NULL) != 0)
		return 1;
	for (i = 0; i < ROUNDS || (low != 0 && jumps < WANTED && i < 100 * ROUNDS); i++) {
		armed = 0;
		if (sigsetjmp(jump, 1) == 0) {
			again(6);
			again(2);
		}
		armed = 0;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	for (i = 0; i < ROUNDS; i++)
		again(4);
	return low != 0 && jumps < WANTED ? 2 : 0;
}
