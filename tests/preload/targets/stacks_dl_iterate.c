/* SPDX-License-Identifier: MIT
 *
 * incstack heap is not checked: libunwind's walk waits for the linker with a lock of its own
 *
 * A thread lists modules and allocates in the callback, where it holds a lock of the dynamic
 * linker, while another thread writes what it has recorded.
 */
#include <link.h>
#include <pthread.h>

#include "nest.h"

enum { LISTS = 60, BLOCKS = 100 };

static int stop;

static int list_module(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)info;
	(void)size;
	(void)unused;
	for (int i = 0; i < BLOCKS; i++)
		allocate();
	return 0;
}

static void *meanwhile(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		nest(2, allocate);
	return unused;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, meanwhile, NULL) != 0)
		return 1;
	for (int i = 0; i < LISTS; i++)
		dl_iterate_phdr(list_module, NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	return pthread_join(thread, NULL);
}
