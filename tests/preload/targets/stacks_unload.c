/* SPDX-License-Identifier: MIT
 *
 * Libraries that come and go while samples are taken through them, one at the
 * place of the other and with frames of another size at the same offsets.
 *
 * incstack heap varies: one thread allocates until the other is done
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "nest.h"

typedef void visit(void (*callee)(void));

static const char *directory;
static visit *visiting;
static __thread visit *seen[2]; /* where each plugin was last */
static int same_place;

static void through(void)
{
	visiting(allocate);
	allocate();
}

static int visit_plugin(int which)
{
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/stacks_unload_%c.so", directory, 'a' + which);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
		return 1;
	*(void **)&visiting = dlsym(handle, which ? "visit_b" : "visit_a");
	if (visiting == NULL)
		return 2;
	same_place += visiting == seen[!which];
	seen[which] = visiting;
	nest(5, through);
	nest(2, through);
	return dlclose(handle) == 0 ? 0 : 3;
}

/* Keeps allocating while the other thread unloads. */
static void *meanwhile(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) {
		nest(8, allocate);
		nest(3, allocate);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int stop = 0;
	int error = 0;

	if (argc < 2)
		return 10;
	directory = argv[1];
	if (pthread_create(&thread, NULL, meanwhile, &stop) != 0)
		return 11;
	for (int i = 0; i < 30 && error == 0; i++)
		error = visit_plugin(i % 2);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (error == 0 && same_place == 0)
		error = 12; /* not the case to be tested */
	return error;
}
