/* SPDX-License-Identifier: MIT
 *
 * incstack heap mode: validate
 * incstack heap truncates at most: 0
 *
 * Loads a library that looks like one built by GraalVM native-image while there are
 * return barriers on the stacks of two threads: no return address that leads into the
 * library may be changed. Traces that meet the library for the first time are
 * complete, too.
 */
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

int main(int argc, char **argv)
{
	pthread_t thread;
	char path[4096];
	void *handle;

	nest(20, allocate);
	nest(30, allocate);
	snprintf(path, sizeof(path), "%s/stacks_isolate.so", argc > 1 ? argv[1] : ".");
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
