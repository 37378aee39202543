/* SPDX-License-Identifier: MIT
 *
 * Blocks that one thread allocates and another one frees: in a plugin that is unloaded meanwhile,
 * and in the last round of the destructors of threads that end. Every tenth block of each kind is
 * kept. handover PLUGIN ROUNDS
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { BLOCK = 64, IN_A_ROUND = 20, QUEUE = 256 };

typedef void *make_fn(size_t bytes);

static void *queue[QUEUE];
static unsigned put, taken;
static int over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;

static void hand_over(void *block)
{
	pthread_mutex_lock(&lock);
	while (put - taken == QUEUE)
		pthread_cond_wait(&changed, &lock);
	queue[put++ % QUEUE] = block;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void *take(void)
{
	void *block = NULL;

	pthread_mutex_lock(&lock);
	while (put == taken && !over)
		pthread_cond_wait(&changed, &lock);
	if (put != taken)
		block = queue[taken++ % QUEUE];
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return block;
}

/* The first byte says whether the block is kept. */
static void *mark(void *block, unsigned number)
{
	*(char *)block = number % 10 == 0;
	return block;
}

static void *free_all(void *unused)
{
	char *block;

	(void)unused;
	while ((block = take()) != NULL)
		if (!*block)
			free(block);
	return NULL;
}

/* ---- two kinds of makers ------------------------------------------------------------------ */

NOINLINE static void make_in(const char *plugin, unsigned round)
{
	void *library = dlopen(plugin, RTLD_NOW);
	make_fn *make = NULL;

	if (library != NULL)
		*(void **)&make = dlsym(library, "make_in_plugin");
	if (make == NULL)
		_exit(3);
	for (unsigned i = 0; i < IN_A_ROUND; i++)
		hand_over(mark(make(BLOCK), round * IN_A_ROUND + i));
	dlclose(library);
}

NOINLINE static void *make_late(void)
{
	void *volatile block = malloc(BLOCK);
	return block;
}

/* Called for each thread as often as there are rounds of destructors. */
static void late(void *value)
{
	static __thread int rounds;
	static unsigned made;

	if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(key, value);
	else
		hand_over(mark(make_late(), __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED)));
}

/* Its record is made here, and is gone before the last round. */
static void *end_late(void *unused)
{
	void *volatile block = malloc(1);

	free(block);
	pthread_setspecific(key, &key);
	return unused;
}

int main(int argc, char **argv)
{
	const unsigned rounds = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	pthread_t consumer, other;

	if (rounds == 0 || pthread_key_create(&key, late) != 0 ||
	    pthread_create(&consumer, NULL, free_all, NULL) != 0)
		return 2;
	for (unsigned i = 0; i < rounds; i++) {
		if (pthread_create(&other, NULL, end_late, NULL) != 0)
			return 2;
		make_in(argv[1], i);
		pthread_join(other, NULL);
	}
	pthread_mutex_lock(&lock);
	over = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(consumer, NULL);
	return 0;
}
