/* SPDX-License-Identifier: MIT
 *
 * A C program that opens a library with an unwinder of its own, which throws. No function
 * of another unwinder may be called for its exceptions.
 * incstack heap mode: validate
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int (*throw_with_own_unwinder)(int levels, int rethrown, void (*action)(void));

static void allocate(void)
{
	void *volatile block = malloc(24);

	free(block);
}

static int nest(int level);
static int (*volatile again)(int) = nest;

static int nest(int level)
{
	allocate();
	int result = level > 0 ? again(level - 1) : throw_with_own_unwinder(9, 0, allocate);

	allocate();
	return result;
}

int main(int argc, char **argv)
{
	char path[4096];
	void *library;

	if (argc < 2)
		return 1;
	snprintf(path, sizeof(path), "%s/stacks_own_unwinder.so", argv[1]);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return 2;
	*(void **)&throw_with_own_unwinder = dlsym(library, "throw_with_own_unwinder");
	if (throw_with_own_unwinder == NULL)
		return 3;
	for (int i = 0; i < 100; i++)
		if (again(i % 10) != 10)
			return 4;
	for (int levels = 0; levels < 12; levels++)
		if (throw_with_own_unwinder(levels, 1, allocate) != levels + 2)
			return 5;
	return 0;
}
