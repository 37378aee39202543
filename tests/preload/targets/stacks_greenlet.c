/* SPDX-License-Identifier: MIT
 *
 * incstack heap mode: validate
 * incstack heap truncates at most: 0
 *
 * A program that loads a library which is known to copy stacks, after it has run for a while:
 * the recorder changes the mode as soon as it meets code of that library.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "nest.h"

static void (*greenlet_call)(void (*)(void));

static void call(void)
{
	greenlet_call(allocate);
}

int main(int argc, char **argv)
{
	char path[4096];
	void *library;

	for (int i = 0; i < 200; i++)
		nest(i % 9, allocate);
	snprintf(path, sizeof(path), "%s/_greenlet.so", argc > 1 ? argv[1] : ".");
	library = dlopen(path, RTLD_NOW);
	if (library == NULL)
		return 1;
	*(void **)&greenlet_call = dlsym(library, "greenlet_call");
	for (int i = 0; i < 200; i++)
		nest(i % 9, call);
	return greenlet_call == NULL;
}
