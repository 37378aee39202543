/* SPDX-License-Identifier: MIT
 *
 * Parts of the recorder that must not be left half done: no handler runs in them,
 * which may jump out, writing is no point of cancellation, errno stays, and what they
 * allocate is not the program's. The program made no such call when it asked for memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder.h"

#define BIT(number) (UINT64_C(1) << ((number)-1))
#define OF_LIBC (BIT(32) | BIT(33))

/* The kernel's masks: libc takes its own two signals out of every mask that passes through
 * its functions. One of them would then end the process, for the thread that serves timers
 * (SIGEV_THREAD) has that signal blocked, and no handler. */
static void set_mask(int how, const uint64_t *mask, uint64_t *before)
{
	syscall(SYS_rt_sigprocmask, how, mask, before, sizeof(*mask));
}

void incstack__record_quiet(struct incstack__quiet *before)
{
	const uint64_t own = BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) |
			     BIT(SIGSYS) | BIT(SIGABRT);
	const uint64_t others = ~(own | OF_LIBC);

	before->error = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel);
	set_mask(SIG_BLOCK, &others, &before->signals);
	before->state = incstack__record_local.state;
	incstack__record_local.state = INCSTACK__INSIDE;
}

void incstack__record_loud(const struct incstack__quiet *before)
{
	incstack__record_local.state = before->state;
	set_mask(SIG_SETMASK, &before->signals, NULL);
	pthread_setcancelstate(before->cancel, NULL);
	errno = before->error;
}

/* The cleanup of a cancelled thread runs in the handler of the first, which blocks that one
 * alone, and has no need of it. */
int incstack__record_blocks_libc(const struct incstack__quiet *before)
{
	return (before->signals & OF_LIBC) != 0 && before->signals != BIT(32);
}
