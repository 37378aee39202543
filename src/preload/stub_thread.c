/* SPDX-License-Identifier: MIT
 *
 * The interposed question where a thread's stack lies: it allocates with the thread's
 * lock held, and the recorder asks the same when it meets a thread for the first time.
 * So it meets the thread before.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "stub.h"

INCSTACK__REAL(pthread_getattr_np)

INCSTACK__INTERPOSED int pthread_getattr_np(pthread_t thread, pthread_attr_t *attributes)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder != NULL)
		recorder->on_thread();
	return pthread_getattr_np_next()(thread, attributes);
}
