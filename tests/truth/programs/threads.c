/* SPDX-License-Identifier: MIT
 *
 * flags: -O2 -pthread
 * leak 4000 alloc<run
 */
#include <pthread.h>
#include <stdlib.h>

static void *kept[4][10];

static inline void *fetch(void)
{
	return malloc(100); /* <alloc fetch> */
}

static void *run(void *mine)
{
	void **slots = mine;

	for (int i = 0; i < 10; i++)
		slots[i] = fetch(); /* <run run> */
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run, kept[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
