/* SPDX-License-Identifier: MIT
 *
 * Checks that a lock is released by the thread that holds it. The program is linked with --wrap
 * of the function below, so each call of code that is linked into it is checked. No lock there
 * is recursive.
 */
#ifndef HELD_LOCKS_H
#define HELD_LOCKS_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	if (pthread_mutex_trylock(lock) != EBUSY)
		abort(); /* an assertion would take a lock */
	return __real_pthread_mutex_unlock(lock);
}

#endif
