/* SPDX-License-Identifier: MIT
 *
 * A thread walks its stack in a callback of dl_iterate_phdr while another one is inside
 * dlopen. Each holds one of the dynamic linker's two locks; the walk needs neither.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sleeps.h"

int loading;
int walked;

static int walking;
static char path[4096];
static int (*walk)(void);

static void *open_plugin(const char *directory, const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *load(void *directory)
{
	return open_plugin(directory, "loads_slowly.so");
}

static int walk_once(struct dl_phdr_info *info, size_t size, void *frames)
{
	(void)info;
	(void)size;
	*(int *)frames = walk();
	__atomic_store_n(&walked, 1, __ATOMIC_RELEASE);
	return 1;
}

/* Ends the program if the walk waits for a lock: then the main thread sleeps at each of 400 looks in a
 * row. */
static void *watch(void *unused)
{
	for (int looks = 0; looks < 400; looks++) {
		usleep(10000);
		if (__atomic_load_n(&walked, __ATOMIC_ACQUIRE))
			return unused;
		if (!__atomic_load_n(&walking, __ATOMIC_ACQUIRE) || !sleeps((int)getpid()))
			looks = -1;
	}
	fputs("the walk waits for a lock\n", stderr);
	_exit(3);
}

int main(int count, char **arguments)
{
	void *plugin = count > 1 ? open_plugin(arguments[1], "walks.so") : NULL;
	pthread_t threads[2];
	void *loaded;
	int frames = 0;

	if (plugin == NULL || (walk = (int (*)(void))dlsym(plugin, "walk")) == NULL || walk() < 2)
		return 1;
	if (pthread_create(&threads[0], NULL, watch, NULL) != 0 ||
	    pthread_detach(threads[0]) != 0 ||
	    pthread_create(&threads[1], NULL, load, arguments[1]) != 0)
		return 1;
	while (!__atomic_load_n(&loading, __ATOMIC_ACQUIRE))
		usleep(1000);
	__atomic_store_n(&walking, 1, __ATOMIC_RELEASE);
	dl_iterate_phdr(walk_once, &frames);
	if (pthread_join(threads[1], &loaded) != 0 || loaded == NULL)
		return 1;
	free(malloc(16));
	return frames < 2;
}
