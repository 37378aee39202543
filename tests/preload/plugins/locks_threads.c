/* SPDX-License-Identifier: MIT
 *
 * A library that stands in for libc's functions for threads, as libraries that look for long waits do.
 */
#define _GNU_SOURCE
#include "locks.h"

LOCKED(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
LOCKED(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
LOCKED(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
LOCKED(int, pthread_setcancelstate, (int state, int *old), (state, old))
LOCKED(int, pthread_setcanceltype, (int type, int *old), (type, old))
LOCKED(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
