/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 600
 *
 * A C program that opens more objects than the recorder remembers. They call operators new that no
 * library defines, and functions that only an unwinder has, while there is no unwinder. The search
 * for them must not change what dlerror returns.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OBJECTS = 80, TIMES = 4, SLACK = 4096 };

int unw_getcontext(void *context) __attribute__((weak));
int unw_backtrace(void **frames, int size) __attribute__((weak));

static int (*allocate[OBJECTS])(void);

/* Another object with the same code. */
static int open_copy(const char *directory, int number)
{
	char path[4096], name[] = "/tmp/stacks_no_runtime.XXXXXX";
	const int copy = mkstemp(name);
	struct stat status;
	void *library;
	int from;

	snprintf(path, sizeof(path), "%s/stacks_no_runtime.so", directory);
	from = open(path, O_RDONLY);
	if (from < 0 || copy < 0 || fstat(from, &status) != 0 ||
	    sendfile(copy, from, NULL, (size_t)status.st_size) != status.st_size)
		return 1;
	close(from);
	close(copy);
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	unlink(name);
	if (library == NULL)
		return 2;
	*(void **)&allocate[number] = dlsym(library, "allocate_without_runtime");
	return allocate[number] == NULL ? 3 : 0;
}

int main(int argc, char **argv)
{
	char context[4096];
	void *frames[4];
	size_t used = 0;
	int error = argc < 2;

	for (int i = 0; i < OBJECTS && error == 0; i++)
		error = open_copy(argv[1], i);
	for (int i = 0; i < OBJECTS * TIMES && error == 0; i++) {
		if (i == OBJECTS)
			used = mallinfo2().uordblks;
		error = allocate[i % OBJECTS]();
	}
	if (error == 0 && mallinfo2().uordblks > used + SLACK) /* what is deleted is freed */
		error = 4;
	if (error == 0 && dlsym(RTLD_DEFAULT, "no such function") == NULL)
		error = allocate[OBJECTS - 1]();
	if (error == 0 && dlerror() == NULL)
		error = 5;
	if (unw_getcontext && unw_getcontext(context) != -1)
		error = 10;
	if (unw_backtrace && unw_backtrace(frames, 4) != 0)
		error = 11;
	for (int i = 0; i < 10; i++)
		free(malloc(10));
	return error;
}
