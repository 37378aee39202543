/* SPDX-License-Identifier: MIT
 *
 * Opens plugins by paths relative to its directory, and leaves the directory. The second
 * one is opened when the path of the first one is no longer valid: then the list of modules is
 * made anew.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

typedef void leak_fn(int count);

static void leak_in(void *library, int count)
{
	leak_fn *leak = NULL;

	if (library != NULL)
		*(void **)&leak = dlsym(library, "leak_in_plugin");
	if (leak == NULL)
		_exit(3);
	leak(count);
}

/* relative FIRST DIRECTORY SECOND */
int main(int argc, char **argv)
{
	void *first;

	if (argc != 4)
		return 2;
	first = dlopen(argv[1], RTLD_NOW);
	leak_in(first, 10);
	if (chdir(argv[2]) != 0)
		return 4;
	leak_in(dlopen(argv[3], RTLD_NOW), 20);
	leak_in(first, 30);
	return 0;
}
