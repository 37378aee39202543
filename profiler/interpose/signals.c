/* SPDX-License-Identifier: MIT
 *
 * Interposes the functions that set the action of a signal or wait for signals, because a CPU profile uses SIGTRAP.
 * Calls that do not concern SIGTRAP are passed on.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>

#include "stub.h"

INCSTACK__REAL(sigaction)
INCSTACK__REAL(signal)
INCSTACK__REAL(__sysv_signal)
INCSTACK__REAL(sigwait)
INCSTACK__REAL(sigwaitinfo)
INCSTACK__REAL(sigtimedwait)
INCSTACK__REAL(signalfd)

/* Returns whether the recorder has done what sigaction would do. */
static bool set_action(int number, const struct sigaction *new, struct sigaction *old)
{
	const struct incstack__recorder *recorder =
		number == SIGTRAP ? incstack__stub_recorder_get() : NULL;

	return recorder && recorder->on_trap_action && recorder->on_trap_action(new, old);
}

static bool set_handler(int number, __sighandler_t handler, int flags, struct sigaction *old)
{
	struct sigaction new = {.sa_handler = handler, .sa_flags = flags};

	return set_action(number, &new, old);
}

INCSTACK__INTERPOSED int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
	return set_action(number, new, old) ? 0 : sigaction_next()(number, new, old);
}

INCSTACK__INTERPOSED __sighandler_t signal(int number, __sighandler_t handler)
{
	struct sigaction old;

	return set_handler(number, handler, SA_RESTART, &old) ? old.sa_handler
							      : signal_next()(number, handler);
}

INCSTACK__INTERPOSED __sighandler_t __sysv_signal(int number, __sighandler_t handler)
{
	struct sigaction old;

	return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER), &old)
		       ? old.sa_handler
		       : __sysv_signal_next()(number, handler);
}

static void announce(const sigset_t *set)
{
	const struct incstack__recorder *recorder = incstack__stub_recorder_get();

	if (recorder && recorder->on_trap_wait && set && sigismember(set, SIGTRAP) == 1)
		recorder->on_trap_wait();
}

INCSTACK__INTERPOSED int sigwait(const sigset_t *set, int *number)
{
	announce(set);
	return sigwait_next()(set, number);
}

INCSTACK__INTERPOSED int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	announce(set);
	return sigwaitinfo_next()(set, info);
}

INCSTACK__INTERPOSED int sigtimedwait(const sigset_t *set, siginfo_t *info,
				      const struct timespec *timeout)
{
	announce(set);
	return sigtimedwait_next()(set, info, timeout);
}

INCSTACK__INTERPOSED int signalfd(int fd, const sigset_t *set, int flags)
{
	announce(set);
	return signalfd_next()(fd, set, flags);
}
