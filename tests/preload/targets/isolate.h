/* SPDX-License-Identifier: MIT
 *
 * Loads a library whose collector looks up return addresses, while there are return barriers on
 * the stacks of two threads, and returns non-zero if one of those addresses was changed.
 */
#ifndef ISOLATE_H
#define ISOLATE_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "nest.h"

static int (*collect)(void (*callee)(void));
static int changed;

static void allocate_more(void)
{
	nest(3, allocate);
	nest(1, allocate);
}

static void collect_below(void)
{
	if (!collect(allocate_more))
		__atomic_store_n(&changed, 1, __ATOMIC_RELAXED);
}

static void *thread_main(void *argument)
{
	for (int round = 0; round < 100; round++)
		nest(round % 12, collect_below);
	return argument;
}

static int collect_in(const char *library, int argc, char **argv)
{
	pthread_t thread;
	char path[4096];
	void *handle;

	nest(20, allocate);
	nest(30, allocate);
	snprintf(path, sizeof(path), "%s/%s", argc > 1 ? argv[1] : ".", library);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
		return 1;
	*(void **)&collect = dlsym(handle, "collect");
	if (collect == NULL || pthread_create(&thread, NULL, thread_main, NULL) != 0)
		return 2;
	thread_main(NULL);
	pthread_join(thread, NULL);
	return changed ? 3 : 0;
}

#endif
