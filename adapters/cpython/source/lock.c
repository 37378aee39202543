/* SPDX-License-Identifier: MIT
 *
 * The lock of a recording: a word, because few threads ever meet here.
 */
#include "lock.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

static atomic_uint word;

void lock_take(void)
{
	/* acquire: what the last owner has written. */
	for (unsigned tries = 0; atomic_exchange_explicit(&word, 1, memory_order_acquire);)
		while (atomic_load_explicit(&word, memory_order_relaxed))
			if (++tries % 64 == 0)
				sched_yield();
}

void lock_give(void)
{
	/* release: pairs with the exchange of the next owner. */
	atomic_store_explicit(&word, 0, memory_order_release);
}

/* A fork waits until no thread has the lock, so that the child can go on. */
void lock_watch_forks(void)
{
	static bool is_done;
	if (!is_done)
		pthread_atfork(lock_take, lock_give, lock_give);
	is_done = true;
}
