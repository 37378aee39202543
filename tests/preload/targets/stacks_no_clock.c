/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 14000
 * incstack heap chooses its seed
 *
 * Threads that forbid themselves the time-stamp counter, each while the others record. A thread that such a
 * thread creates has never been allowed to read it.
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "nest.h"

static void forbid(void)
{
	allocate();
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0)
		abort();
	allocate();
}

static void *thread_main(void *argument)
{
	for (int i = 0; i < 1000; i++)
		nest(i % 10, allocate);
	nest(20, forbid);
	for (int i = 0; i < 2000; i++)
		nest(i % 10, allocate);
	return argument;
}

int main(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, thread_main, NULL) != 0)
			return 1;
	thread_main(NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (pthread_create(&threads[0], NULL, thread_main, NULL) != 0)
		return 1;
	pthread_join(threads[0], NULL);
	return 0;
}
