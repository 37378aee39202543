/* SPDX-License-Identifier: MIT
 *
 * incstack heap preload: locks_threads.so
 * incstack heap options: --follow-children
 * incstack heap traces: 3000
 * incstack heap is not checked
 * incstack cpu walkers: no
 *
 * A library stands in for the functions for threads. No walker checks
 * the traces: libunwind, too, calls these functions, and would wait for the library's lock.
 */
#include "locked.h"

static void use_functions(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	int before;

	if (pthread_mutex_lock(&mutex) != 0 || pthread_mutex_unlock(&mutex) != 0 ||
	    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before) != 0 ||
	    pthread_setcancelstate(before, NULL) != 0)
		abort();
	if (pthread_mutex_trylock(&mutex) != 0 || pthread_mutex_unlock(&mutex) != 0)
		abort();
}
