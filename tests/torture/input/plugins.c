/* SPDX-License-Identifier: MIT
 *
 * Plugins that are loaded and unloaded all the time while other threads allocate.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int stop;

static void *back(int n)
{
	return malloc((size_t)n + 1);
}

static void *others(void *unused)
{
	(void)unused;
	while (!stop)
		free(back(10));
	return NULL;
}

int main(int argc, char **argv)
{
	const int rounds = atoi(argv[argc - 1]) * 10;
	pthread_t threads[2];
	long used = 0;

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, others, NULL);
	for (int i = 0; i < rounds; i++) {
		char name[16];
		void *plugin;
		void *(*use)(int, void *(*)(int));

		snprintf(name, sizeof(name), "./p%d.so", i % 4);
		plugin = dlopen(name, RTLD_NOW);
		if (plugin == NULL)
			return 1;
		use = (void *(*)(int, void *(*)(int)))dlsym(plugin, "plugin_use");
		for (int k = 0; k < 20; k++) {
			free(use(k, back));
			used++;
		}
		dlclose(plugin);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", used);
	return 0;
}
