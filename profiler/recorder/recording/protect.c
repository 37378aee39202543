/* SPDX-License-Identifier: MIT
 *
 * Protects parts of the recorder that must not be left half done. In such a part no signal handler
 * runs, because it might jump out. writev() is no cancellation point, errno is preserved, and
 * allocations are not recorded. The program, which only asked for memory, must not notice the
 * recorder's calls.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/system/kernel.h"
#include "recorder/system/libc.h"
#include "recorder/recording/recording.h"
#include "recorder/system/system.h"

#define BIT(number) (UINT64_C(1) << ((number)-1))
#define OF_LIBC (BIT(32) | BIT(33))

/* Sets the mask by the system call, because libc removes its two internal signals from every mask
 * that passes through its functions. The thread that serves timers (SIGEV_THREAD) has one of
 * these signals blocked and has no handler for it, so unblocking it would end the process. */
static void set_mask(int how, const uint64_t *mask, uint64_t *before)
{
	incstack__kernel_call(SYS_rt_sigprocmask, how, mask, before, sizeof(*mask));
}

void incstack__record_protect(struct incstack__protection *before)
{
	const uint64_t own = BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) |
			     BIT(SIGSYS) | BIT(SIGABRT);
	const uint64_t others = ~(own | OF_LIBC);

	before->error = errno;
	incstack__libc.setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel);
	set_mask(SIG_BLOCK, &others, &before->signals);
	before->state = incstack__record_local.state;
	incstack__record_local.state = INCSTACK__INSIDE;
}

void incstack__record_unprotect(const struct incstack__protection *before)
{
	incstack__record_local.state = before->state;
	set_mask(SIG_SETMASK, &before->signals, NULL);
	incstack__libc.setcancelstate(before->cancel, NULL);
	errno = before->error;
}

/* The cleanup of a cancelled thread runs in the handler of signal 32. In this handler, signal 32 is
 * the only blocked signal and may be unblocked, so this case does not count. */
bool incstack__record_blocks_libc(const struct incstack__protection *before)
{
	if (incstack__record_local.handling) /* it blocks signal 33, but not 32 */
		return incstack__record_local.no_second_tick || (before->signals & BIT(32)) != 0;
	return (before->signals & OF_LIBC) != 0 && before->signals != BIT(32);
}
