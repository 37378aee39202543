/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack heap varies
 *
 * Threads in C that are cancelled, or exit inside a recursion. libc jumps from one cleanup
 * handler to the next; each handler allocates.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <threads.h>

enum { THREADS = 60, DEPTH = 30 };

static atomic_int deep, cleaned, never;

static void clean(void *block)
{
	void *volatile other = malloc(33);

	free(other);
	free(block);
	cleaned++;
}

enum end { CANCELLED, EXITS, EXITS_IN_C11 };

static __attribute__((noinline)) int descend(int depth, enum end end)
{
	volatile int below = 0;
	void *volatile block = malloc((size_t)depth + 1);

	pthread_cleanup_push(clean, block);
	if (depth == 0) {
		deep = 1;
		if (end == EXITS)
			pthread_exit(NULL);
		if (end == EXITS_IN_C11)
			thrd_exit(0);
		while (!never) {
			void *volatile other = malloc(7);

			free(other);
			pthread_testcancel();
		}
	}
	if (depth > 0)
		below = descend(depth - 1, end);
	pthread_cleanup_pop(1);
	return below + 1;
}

static void *run(void *end)
{
	descend(DEPTH, *(enum end *)end);
	return NULL;
}

int main(void)
{
	for (int i = 0; i < THREADS; i++) {
		enum end end = (enum end)(i % 3);
		pthread_t thread;

		deep = 0;
		if (pthread_create(&thread, NULL, run, &end) != 0)
			return 2;
		while (!deep)
			;
		if (end == CANCELLED)
			pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	return cleaned != THREADS * (DEPTH + 1);
}
