/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 800
 *
 * Threads that block all signals, like those of many libraries, and wait when the process ends.
 * What they have recorded is written. One thread waits for any signal; none may come.
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "nest.h"

enum { THREADS = 4, ROUNDS = 200 };

static pthread_barrier_t ready;
static int never[2];

static void wait_for_ever(int number)
{
	sigset_t all;
	char byte;

	sigfillset(&all);
	pthread_barrier_wait(&ready);
	if (number == 0)
		sigwait(&all, &number);
	else if (read(never[0], &byte, 1) != 1)
		_exit(3);
	_exit(2);
}

static void *thread_main(void *number)
{
	for (int round = 0; round < ROUNDS; round++)
		nest(round % 9, allocate);
	wait_for_ever(*(int *)number);
	return NULL;
}

int main(void)
{
	static int numbers[THREADS];
	pthread_t thread;
	sigset_t all;

	sigfillset(&all);
	if (pipe(never) != 0 || pthread_barrier_init(&ready, NULL, THREADS + 1) != 0 ||
	    pthread_sigmask(SIG_SETMASK, &all, NULL) != 0)
		return 1;
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		if (pthread_create(&thread, NULL, thread_main, &numbers[i]) != 0)
			return 1;
	}
	pthread_barrier_wait(&ready);
	return 0;
}
