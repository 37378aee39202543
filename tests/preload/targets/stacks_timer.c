/* SPDX-License-Identifier: MIT
 *
 * A timer that calls a function in a thread (SIGEV_THREAD). libc's thread that serves it
 * waits for a signal that only the kernel's own mask keeps blocked: 32, which ends the
 * process where it is not. That thread allocates at every tick, and what the program calls
 * meanwhile takes the recorder through each of its slow paths.
 *
 * incstack heap varies
 * incstack heap loses samples: the thread has every signal blocked when the process ends
 */
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { TICKS = 3000 };

static sem_t ticked;

static void tick(union sigval value)
{
	void *volatile block = malloc((size_t)value.sival_int);

	free(block);
	sem_post(&ticked);
}

int main(void)
{
	const struct itimerspec every = {{0, 50000}, {0, 50000}};
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD,
		.sigev_notify_function = tick,
		.sigev_value.sival_int = 100,
	};
	timer_t timer;

	if (sem_init(&ticked, 0, 0) != 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
	    timer_settime(timer, 0, &every, NULL) != 0)
		return 1;
	for (int i = 0; i < TICKS; i++)
		while (sem_wait(&ticked) != 0)
			;
	return timer_delete(timer) != 0;
}
