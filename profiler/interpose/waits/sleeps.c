/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions that sleep, and those that wait for a child.
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "waits.h"

static struct timespec time_of(int64_t ns)
{
	return (struct timespec){ns / 1000000000, ns % 1000000000};
}

INCSTACK__REAL(nanosleep)

INCSTACK__INTERPOSED int nanosleep(const struct timespec *time, struct timespec *rest)
{
	struct timespec own;
	struct timespec *left = rest ? rest : &own;
	int result;

	INCSTACK__WAITING(INCSTACK__STATE_SLEEP, result, nanosleep_next()(time, left),
			  result == -1 && errno == EINTR, time = left)
	return result;
}

INCSTACK__REAL(clock_nanosleep)

INCSTACK__INTERPOSED int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
					 struct timespec *rest)
{
	struct timespec own;
	struct timespec *left = rest ? rest : &own;
	int result;

	INCSTACK__WAITING(INCSTACK__STATE_SLEEP, result,
			  clock_nanosleep_next()(clock, flags, time, left), result == EINTR,
			  time = (flags & TIMER_ABSTIME) ? time : left)
	return result;
}

INCSTACK__INTERPOSED int usleep(useconds_t us)
{
	struct timespec time = time_of((int64_t)us * 1000);
	int result;

	INCSTACK__WAITING(INCSTACK__STATE_SLEEP, result, nanosleep_next()(&time, &time),
			  result == -1 && errno == EINTR, )
	return result;
}

/* Returns the seconds that are left, as libc does. */
INCSTACK__INTERPOSED unsigned sleep(unsigned seconds)
{
	struct timespec time = {.tv_sec = seconds};
	const int saved = errno;
	int result;

	INCSTACK__WAITING(INCSTACK__STATE_SLEEP, result, nanosleep_next()(&time, &time),
			  result == -1 && errno == EINTR, )
	if (result == 0)
		errno = saved;
	return result == 0 ? 0 : (unsigned)time.tv_sec;
}

#define WAITS(type, name, parameters, arguments) \
	INCSTACK__WAITS(type, name, INCSTACK__STATE_OTHER, parameters, arguments)

WAITS(pid_t, wait, (int *status), (status))
WAITS(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options))
WAITS(pid_t, wait3, (int *status, int options, struct rusage *usage), (status, options, usage))
WAITS(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *usage),
      (pid, status, options, usage))
WAITS(int, waitid, (idtype_t kind, id_t id, siginfo_t *info, int options),
      (kind, id, info, options))
