/* SPDX-License-Identifier: MIT
 *
 * incstack heap traces: 400
 * incstack heap says: the program itself defines malloc
 *
 * The program defines malloc and free and finds those of libc by dlsym when they are called for the
 * first time. libc's dlsym frees the text of the last error by the program's free. So an error that
 * the recorder left behind before that would make free call itself without end.
 */
#include <dlfcn.h>
#include <stdlib.h>

enum { ROUNDS = 200 };

static void *(*real_malloc)(size_t);
static void (*real_free)(void *);
static void *volatile keep;

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
	if (real_malloc == NULL)
		*(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
	return real_malloc(bytes);
}

__attribute__((visibility("default"))) void free(void *block)
{
	if (real_free == NULL)
		*(void **)&real_free = dlsym(RTLD_NEXT, "free");
	real_free(block);
}

static __attribute__((noinline)) void allocate(int depth)
{
	if (depth > 0) {
		allocate(depth - 1);
		__asm__ volatile("");
		return;
	}
	keep = malloc(10);
	free(keep);
	keep = calloc(1, 10); /* the recorder sees it */
	keep = realloc(keep, 20);
	free(keep);
}

int main(void)
{
	if (dlerror() != NULL)
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		allocate(i % 20);
	if (dlsym(RTLD_NEXT, "no such function") != NULL || dlerror() == NULL)
		return 2;
	for (int i = 0; i < ROUNDS; i++)
		allocate(i % 20);
	return real_malloc == NULL || real_free == NULL ? 3 : 0;
}
