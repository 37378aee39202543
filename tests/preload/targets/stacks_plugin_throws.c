/* SPDX-License-Identifier: MIT
 *
 * A C program without an unwinder that opens a C++ library, which throws.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int (*throw_through)(int levels);

static int nest(int level);
static int (*volatile again)(int) = nest;

static int nest(int level)
{
	void *volatile block = malloc(24);
	int result = level > 0 ? again(level - 1) : throw_through(20);

	free(block);
	return result;
}

int main(int argc, char **argv)
{
	char path[4096];
	void *library;

	if (argc < 2)
		return 1;
	free(malloc(100)); /* recorded before there is an unwinder */
	snprintf(path, sizeof(path), "%s/stacks_throwing.so", argv[1]);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return 2;
	*(void **)&throw_through = dlsym(library, "throw_through");
	if (throw_through == NULL)
		return 3;
	for (int i = 0; i < 200; i++)
		if (again(i % 10) != 21)
			return 4;
	return 0;
}
