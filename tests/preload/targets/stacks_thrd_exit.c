/* SPDX-License-Identifier: MIT
 *
 * incstack heap truncates at most: 0
 * incstack heap stale at most: 0
 *
 * Threads of C11 that end below some frames, and allocate in their destructors.
 */
#include <stdlib.h>
#include <threads.h>

#include "nest.h"

enum { THREADS = 40, DEPTH = 20, EVENTS = 200, RESULT = 7 };

static tss_t at_end;

static void destroy(void *block)
{
	allocate();
	free(block);
}

static void leave(void)
{
	allocate();
	thrd_exit(RESULT);
}

static int run(void *argument)
{
	(void)argument;
	tss_set(at_end, malloc(16));
	for (int i = 0; i < EVENTS; i++)
		nest(i % DEPTH, allocate);
	nest(DEPTH, leave);
	return 0;
}

int main(void)
{
	if (tss_create(&at_end, destroy) != thrd_success)
		return 1;
	for (int i = 0; i < THREADS; i++) {
		thrd_t thread;
		int result = 0;

		if (thrd_create(&thread, run, NULL) != thrd_success ||
		    thrd_join(thread, &result) != thrd_success || result != RESULT)
			return 2;
	}
	return 0;
}
