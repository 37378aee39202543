/* SPDX-License-Identifier: MIT
 *
 * Its constructor waits for the program, while the dynamic linker's lock is held.
 */
#include <unistd.h>

extern int loading;
extern int walked;

__attribute__((constructor)) static void wait_for_walk(void)
{
	__atomic_store_n(&loading, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&walked, __ATOMIC_ACQUIRE))
		usleep(5000);
}
