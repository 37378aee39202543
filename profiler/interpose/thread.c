/* SPDX-License-Identifier: MIT
 *
 * Interposes pthread_getattr_np, which allocates while it holds the thread's lock. The recorder
 * calls the same function at a thread's first event, which must therefore come before.
 */
#include <pthread.h>

#include "stub.h"

INCSTACK__REAL(pthread_getattr_np)

INCSTACK__INTERPOSED int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder)
		recorder->on_thread();
	return pthread_getattr_np_next()(thread, attributes);
}
