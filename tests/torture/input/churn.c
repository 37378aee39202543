/* SPDX-License-Identifier: MIT
 *
 * Short threads by the hundred, detached ones and ones with thread-local destructors, that
 * end by return, pthread_exit and exit of the process.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_key_t key;
static atomic_long sum;
static void *volatile kept;

static void at_end(void *block)
{
	kept = realloc(block, 100);
	free(kept);
	sum++;
}

__attribute__((noinline)) static void deep(int n)
{
	void *block = calloc(1, (size_t)n + 1);

	if (n > 0)
		deep(n - 1);
	else if (sum % 3 == 0)
		pthread_setspecific(key, strtol("0", NULL, 10) == 0 ? malloc(10) : NULL);
	free(block);
}

static void *work(void *number)
{
	deep((int)((long)number % 40));
	if ((long)number % 2 == 0)
		pthread_exit(number);
	return number;
}

int main(int argc, char **argv)
{
	const long rounds = atol(argv[argc - 1]) * 10;
	pthread_attr_t detached;

	pthread_key_create(&key, at_end);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (long i = 0; i < rounds; i++) {
		pthread_t threads[8];

		for (long t = 0; t < 8; t++)
			pthread_create(&threads[t], NULL, work, (void *)(i + t));
		for (int t = 0; t < 8; t++)
			pthread_join(threads[t], NULL);
		if (i % 10 == 0)
			pthread_create(&threads[0], &detached, work, (void *)i);
	}
	usleep(50000);
	printf("%ld\n", rounds);
	return 0;
}
