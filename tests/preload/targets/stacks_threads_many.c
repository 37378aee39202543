/* SPDX-License-Identifier: MIT
 *
 * incstack heap is not checked
 * incstack heap traces: 8800
 * incstack heap shares no slot
 *
 * More threads than the recorder has counter slots, but only a few at a time: the last ones
 * count in slots of their own, as the first ones did.
 */
#include <pthread.h>
#include <unistd.h>

#include "nest.h"

enum { THREADS = 1100, AT_ONCE = 4, LEVELS = 8 };

static void *work(void *argument)
{
	for (int level = 0; level < LEVELS; level++)
		nest(level, allocate);
	return argument;
}

static void run_threads(void)
{
	pthread_t threads[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			_exit(1);
	for (int i = 0; i < AT_ONCE; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	for (int i = 0; i < THREADS; i += AT_ONCE)
		run_threads();
	return 0;
}
