/* SPDX-License-Identifier: MIT
 *
 * incstack heap varies: threads allocate until the main thread is done
 * incstack heap truncates at most: 0
 * incstack heap equal: visit_a visit_b
 *
 * Libraries come and go while other threads write what they have recorded.
 */
#include <pthread.h>

#include "visit.h"

enum { ROUNDS = 600, THREADS = 4 };

static int stop;

static void *meanwhile(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		nest(2, allocate);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int error = argc < 2 ? 10 : 0;

	directory = argv[1];
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, meanwhile, NULL) != 0)
			return 11;
	for (int i = 0; i < ROUNDS && error == 0; i++)
		error = visit_plugin("stacks_unload", i % 2, dlclose);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (error == 0 && same_place == 0)
		error = 12; /* not the case to be tested */
	return error;
}
