/* SPDX-License-Identifier: MIT
 *
 * Handlers that allocate, on an alternate stack too; timers by signal and by thread; threads that
 * are cancelled.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static atomic_long handled, timed;
static void *volatile kept;

__attribute__((noinline)) static void use(int n)
{
	void *block = malloc((size_t)n + 1);

	kept = block;
	free(block);
	if (n > 0)
		use(n - 1);
}

static void on_signal(int number)
{
	(void)number;
	handled++;
}

static void on_timer(union sigval value)
{
	(void)value;
	use(5);
	timed++;
}

static void *be_cancelled(void *unused)
{
	(void)unused;
	for (;;) {
		use(10);
		pthread_testcancel();
	}
	return NULL;
}

static void start_timer(timer_t *timer)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer};
	const struct itimerspec often = {{0, 2000000}, {0, 2000000}};

	timer_create(CLOCK_MONOTONIC, &event, timer);
	timer_settime(*timer, 0, &often, NULL);
}

int main(int argc, char **argv)
{
	const int rounds = atoi(argv[argc - 1]) * 20;
	const struct sigaction action = {.sa_handler = on_signal,
					 .sa_flags = SA_ONSTACK | SA_RESTART};
	stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	timer_t timer;

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	start_timer(&timer);
	for (int i = 0; i < rounds; i++) {
		pthread_t thread;

		raise(SIGUSR1);
		use(20);
		pthread_create(&thread, NULL, be_cancelled, NULL);
		use(20);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	while (timed < 5)
		usleep(1000);
	timer_delete(timer);
	usleep(10000);
	printf("%d %d\n", handled == rounds, timed >= 5);
	return 0;
}
