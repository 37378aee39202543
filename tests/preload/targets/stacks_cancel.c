/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack heap varies
 *
 * Threads in C that are cancelled or exit from within a recursion: libc jumps from one
 * cleanup handler, which allocates, to the next.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 60, DEPTH = 30 };

static atomic_int deep, cleaned, never;

static void clean(void *block)
{
	void *volatile other = malloc(33);

	free(other);
	free(block);
	cleaned++;
}

static __attribute__((noinline)) int descend(int depth, int exits)
{
	volatile int below = 0;
	void *volatile block = malloc((size_t)depth + 1);

	pthread_cleanup_push(clean, block);
	if (depth == 0) {
		deep = 1;
		if (exits)
			pthread_exit(NULL);
		while (!never) {
			void *volatile other = malloc(7);

			free(other);
			pthread_testcancel();
		}
	}
	if (depth > 0)
		below = descend(depth - 1, exits);
	pthread_cleanup_pop(1);
	return below + 1;
}

static void *run(void *exits)
{
	descend(DEPTH, exits != NULL);
	return NULL;
}

int main(void)
{
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		deep = 0;
		if (pthread_create(&thread, NULL, run, i % 2 ? &thread : NULL) != 0)
			return 2;
		while (!deep)
			;
		if (i % 2 == 0)
			pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	return cleaned != THREADS * (DEPTH + 1);
}
