/* SPDX-License-Identifier: MIT
 *
 * Parts of the recorder that must not be left half done: no handler runs in them,
 * which may jump out, writing is no point of cancellation, errno stays, and what they
 * allocate is not the program's. The program made no such call when it asked for memory.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "recorder.h"

void incstack__record_quiet(struct incstack__quiet *before)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t others;

	before->error = errno;
	sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&others, own[i]);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel);
	pthread_sigmask(SIG_BLOCK, &others, &before->signals);
	before->state = incstack__record_local.state;
	incstack__record_local.state = INCSTACK__INSIDE;
}

void incstack__record_loud(const struct incstack__quiet *before)
{
	incstack__record_local.state = before->state;
	pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
	pthread_setcancelstate(before->cancel, NULL);
	errno = before->error;
}
