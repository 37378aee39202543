/* SPDX-License-Identifier: MIT
 *
 * incstack heap options: --interval 64k
 *
 * Calls calloc in several threads at the same time. All get memory of the allocator.
 */
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, CALLS = 300000, MANY = 8192 };

static void *call(void *failed)
{
	for (int i = 0; i < CALLS; i++) {
		unsigned char *volatile block = calloc(1, i % 64 ? 16 : MANY);

		if (block == NULL || block[0] != 0)
			return failed;
		block[0] = 1;
		free(block);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int status = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, call, threads) != 0)
			return 2;
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		if (pthread_join(threads[i], &failed) != 0 || failed != NULL)
			status = 1;
	}
	return status;
}
