/* SPDX-License-Identifier: MIT
 *
 * The process ends while a thread lists the loaded objects. It holds the dynamic linker's lock and
 * never returns.
 *
 * incstack heap returns: 0
 */
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t listing;
static int for_ever;

static __attribute__((noinline)) void allocate(int blocks)
{
	for (int i = 0; i < blocks; i++) {
		void *volatile block = malloc(100);

		free(block);
	}
}

static int look(struct dl_phdr_info *info, size_t size, void *argument)
{
	(void)info;
	(void)size;
	sem_post(&listing);
	while (argument == &for_ever)
		pause();
	return 1;
}

static void *list(void *argument)
{
	allocate(10);
	dl_iterate_phdr(look, argument);
	return NULL;
}

static void start(pthread_t *thread, void *argument)
{
	if (pthread_create(thread, NULL, list, argument) != 0)
		exit(1);
	while (sem_wait(&listing) != 0)
		;
}

int main(void)
{
	pthread_t thread;

	sem_init(&listing, 0, 0);
	start(&thread, &for_ever);
	allocate(10);
	return 0;
}
