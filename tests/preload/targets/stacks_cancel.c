/* SPDX-License-Identifier: MIT
 *
 * Threads that are cancelled while they sleep. The signal of a cancellation may come while a tick's handler
 * runs. Then the thread must end after the handler, which may hold a lock of the recorder.
 */
#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 400, THREADS = 8 };

static void *sleep_again(void *argument)
{
	for (;;)
		usleep(100);
	return argument;
}

int main(void)
{
	pthread_t threads[THREADS];
	void *result;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, sleep_again, NULL) != 0)
				return 1;
		for (int i = 0; i < THREADS; i++)
			if (pthread_cancel(threads[i]) != 0 ||
			    pthread_join(threads[i], &result) != 0 || result != PTHREAD_CANCELED)
				return 2;
	}
	return 0;
}
