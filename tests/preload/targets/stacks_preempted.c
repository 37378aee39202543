/* SPDX-License-Identifier: MIT
 *
 * Contexts that a timer preempts: its handler switches to the next context, so most contexts are left
 * in the middle of a handler, and are resumed there. The program allows no switch during an allocation.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

enum { CONTEXTS = 5, STACK_BYTES = 128 << 10, ROUNDS = 60, OUTSIDE = -1 };

static ucontext_t outside, inside[CONTEXTS];
static volatile int current = OUTSIDE, done;
static volatile sig_atomic_t may_switch;
static long work;

static ucontext_t *context(int number)
{
	return number == OUTSIDE ? &outside : &inside[number];
}

static void switch_to(int number)
{
	const int from = current;

	current = number;
	swapcontext(context(from), context(number));
}

static void on_timer(int number)
{
	(void)number;
	if (!may_switch)
		return;
	may_switch = 0;
	switch_to((current + 1) % CONTEXTS);
	may_switch = 1;
}

__attribute__((noinline)) static void go_down(int frames)
{
	char local[24];
	void *volatile block;

	memset(local, frames, sizeof(local));
	may_switch = 0;
	block = malloc(30 + (size_t)frames);
	may_switch = 1;
	for (volatile int i = 0; i < 3000; i++)
		work++;
	if (frames > 0)
		go_down(frames - 1);
	__asm__ volatile("" : : "r"(local) : "memory");
	may_switch = 0;
	free(block);
	may_switch = 1;
}

static void run(int number)
{
	for (int i = 0; i < ROUNDS; i++)
		go_down(6 + (number + i) % 9);
	may_switch = 0;
	done++;
	for (;;)
		switch_to(done == CONTEXTS ? OUTSIDE : (current + 1) % CONTEXTS);
}

static int make_context(int number)
{
	ucontext_t *made = &inside[number];

	if (getcontext(made) != 0)
		return -1;
	made->uc_stack.ss_sp = malloc(STACK_BYTES);
	made->uc_stack.ss_size = STACK_BYTES;
	makecontext(made, (void (*)(void))run, 1, number);
	return 0;
}

int main(void)
{
	const struct itimerval often = {.it_interval = {.tv_usec = 900},
					.it_value = {.tv_usec = 900}};
	const struct itimerval never = {.it_value = {.tv_usec = 0}};
	const struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};

	for (int i = 0; i < CONTEXTS; i++)
		if (make_context(i) != 0)
			return 1;
	if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &often, NULL) != 0)
		return 1;
	switch_to(0);
	may_switch = 0;
	setitimer(ITIMER_REAL, &never, NULL);
	return done != CONTEXTS;
}
