/* SPDX-License-Identifier: MIT
 *
 * Deep recursion on a thread with a large stack, with an allocation in each frame.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long deep(long n)
{
	void *block = malloc(16);
	const long result = n > 0 ? deep(n - 1) + 1 : 0;

	free(block);
	return result;
}

static void *work(void *depth)
{
	return (void *)deep((long)depth);
}

int main(int argc, char **argv)
{
	const long depth = atol(argv[argc - 1]);
	pthread_attr_t large;
	pthread_t thread;
	void *result;

	pthread_attr_init(&large);
	pthread_attr_setstacksize(&large, (size_t)depth * 128 + (1 << 20));
	pthread_create(&thread, &large, work, (void *)depth);
	pthread_join(thread, &result);
	printf("%ld\n", (long)result);
	return 0;
}
