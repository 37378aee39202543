/* SPDX-License-Identifier: MIT
 *
 * incstack heap preload: other_clock.so
 * incstack heap traces: 2000
 * incstack heap returns: 0
 * incstack heap varies
 * incstack heap does not say: could not be stopped
 *
 * A library changes the program's clock. The recorder must use the kernel's: the file must not seem to
 * be of an earlier run, and threads must get the time to hold still when the process ends.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, CALLS = 500 };

static int ready;

static void *allocate(void *argument)
{
	for (int i = 0; i < CALLS; i++) {
		void *volatile block = malloc(30);

		free(block);
	}
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (argument == NULL)
		pause();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, allocate, NULL) != 0)
			return 1;
	allocate(&thread);
	while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) <= THREADS)
		usleep(1000);
	return 0;
}
