/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions that wait for another thread. The functions of pthreads return no EINTR. A mutex that is
 * free is taken without a look at the clock.
 */
#include <pthread.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/sem.h>

#include "waits.h"

INCSTACK__REAL(pthread_mutex_trylock)
INCSTACK__REAL(pthread_mutex_lock)

INCSTACK__INTERPOSED int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int result = pthread_mutex_trylock_next()(mutex);

	if (result != EBUSY)
		return result;
	INCSTACK__WAITING(INCSTACK__STATE_LOCK, result, pthread_mutex_lock_next()(mutex), false, )
	return result;
}

#define WAITS(name, parameters, arguments) \
	INCSTACK__WAITS_UNINTERRUPTED(int, name, INCSTACK__STATE_LOCK, parameters, arguments)

WAITS(pthread_mutex_timedlock, (pthread_mutex_t * mutex, const struct timespec *until),
      (mutex, until))
WAITS(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
WAITS(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
WAITS(pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const struct timespec *until),
      (lock, until))
WAITS(pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const struct timespec *until),
      (lock, until))
WAITS(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex))
WAITS(pthread_cond_timedwait,
      (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until),
      (condition, mutex, until))
WAITS(pthread_cond_clockwait,
      (pthread_cond_t * condition, pthread_mutex_t *mutex, clockid_t clock,
       const struct timespec *until),
      (condition, mutex, clock, until))
WAITS(pthread_barrier_wait, (pthread_barrier_t * barrier), (barrier))
WAITS(pthread_join, (pthread_t thread, void **result_of), (thread, result_of))
WAITS(pthread_timedjoin_np, (pthread_t thread, void **result_of, const struct timespec *until),
      (thread, result_of, until))

#undef WAITS
#define WAITS(name, parameters, arguments) \
	INCSTACK__WAITS(int, name, INCSTACK__STATE_LOCK, parameters, arguments)

WAITS(sem_wait, (sem_t * semaphore), (semaphore))
WAITS(sem_timedwait, (sem_t * semaphore, const struct timespec *until), (semaphore, until))
WAITS(sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *until),
      (semaphore, clock, until))
WAITS(flock, (int fd, int operation), (fd, operation))
WAITS(semop, (int set, struct sembuf *operations, size_t count), (set, operations, count))

INCSTACK__WAITS_TIME(semtimedop, INCSTACK__STATE_LOCK,
		     (int set, struct sembuf *operations, size_t count,
		      const struct timespec *timeout),
		     (set, operations, count, timeout))
