/* SPDX-License-Identifier: MIT
 *
 * incstack heap is not checked: libunwind's walk waits for the linker
 *
 * A callback of dl_iterate_phdr, whose thread holds a lock of the dynamic linker, waits for a
 * mutex. Another thread holds the mutex and allocates until what it has recorded must be written.
 */
#include <link.h>
#include <pthread.h>
#include <semaphore.h>

#include "nest.h"

enum { BLOCKS = 200000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t listing;

static int wait_for_mutex(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)info;
	(void)size;
	(void)unused;
	sem_post(&listing);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return 1;
}

static void *list(void *unused)
{
	allocate();
	dl_iterate_phdr(wait_for_mutex, NULL);
	return unused;
}

static void allocate_all(void)
{
	for (int i = 0; i < BLOCKS; i++)
		allocate();
}

int main(void)
{
	pthread_t thread;

	sem_init(&listing, 0, 0);
	pthread_mutex_lock(&mutex);
	if (pthread_create(&thread, NULL, list, NULL) != 0)
		return 1;
	while (sem_wait(&listing) != 0)
		;
	nest(3, allocate_all);
	pthread_mutex_unlock(&mutex);
	return pthread_join(thread, NULL);
}
