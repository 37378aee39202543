/* SPDX-License-Identifier: MIT
 *
 * A program, or with IS_PLUGIN a library, of which there are two builds: VERSION 1 and 2 have the same
 * functions in another order. So a name from the wrong file is the name of the wrong function.
 *
 * work TIMES        calls both functions
 * burn MS           the same until it has used so many milliseconds of CPU time
 * spin              says that it has begun, and calls them until it is killed
 * plugin FILE NEW   loads the library FILE, calls both functions, and unloads it; NEW takes its place,
 *                   is loaded under the same name, and called
 * cut FILE BYTES    calls both functions, loads the library FILE, cuts the file to so many bytes, and leaves by _exit
 * cut FILE BYTES OTHER
 *                   loads and calls the library OTHER before it leaves
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef IS_PLUGIN
#include <dlfcn.h>
#include <unistd.h>
#endif

static void *volatile sink;
static volatile unsigned long turns;

#define FUNCTION(name, bytes) \
	__attribute__((noinline)) void name(void); \
	__attribute__((noinline)) void name(void) \
	{ \
		for (int i = 0; i < 100; i++) { \
			sink = malloc(bytes); \
			free(sink); \
		} \
		for (int i = 0; i < (bytes)*100; i++) \
			turns = turns + 1; \
	}

#if VERSION == 1
FUNCTION(right, 1000)
FUNCTION(wrong, 10)
#else
FUNCTION(wrong, 10)
FUNCTION(right, 1000)
#endif

__attribute__((noinline)) void work(void);
__attribute__((noinline)) void work(void)
{
	right();
	wrong();
}

#ifndef IS_PLUGIN
static int call(const char *file)
{
	void *plugin = dlopen(file, RTLD_NOW);
	void *symbol = plugin != NULL ? dlsym(plugin, "work") : NULL;
	void (*in_plugin)(void);

	if (symbol == NULL)
		return 1;
	memcpy(&in_plugin, &symbol, sizeof(symbol));
	in_plugin();
	return dlclose(plugin);
}

/* Nothing is allocated between the load and the cut, so the recorder has not seen the library before. The
 * pages that the file lost are gone from memory, too. */
static int cut(const char *file, const char *bytes)
{
	work();
	return dlopen(file, RTLD_NOW) == NULL || truncate(file, atoi(bytes)) != 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && strcmp(argv[1], "cut") == 0)
		_exit(cut(argv[2], argv[3]) || (argc == 5 && call(argv[4])));
	if (argc == 4 && strcmp(argv[1], "plugin") == 0)
		return call(argv[2]) || rename(argv[3], argv[2]) != 0 || call(argv[2]);
	if (argc == 3 && strcmp(argv[1], "work") == 0)
		for (int i = atoi(argv[2]); i > 0; i--)
			work();
	if (argc == 3 && strcmp(argv[1], "burn") == 0)
		while (clock() < atoi(argv[2]) * (CLOCKS_PER_SEC / 1000))
			work();
	if (argc == 2) {
		puts("begun");
		fflush(stdout);
		for (;;)
			work();
	}
	return 0;
}
#endif
