/* SPDX-License-Identifier: MIT
 *
 * Blocks signals around code that a jump out of a signal handler must not leave half done, and tells
 * whether a handler runs on a signal stack.
 */
#include <signal.h>
#include <sys/syscall.h>

#include "shared.h"
#include "signals.h"

#define BIT(number) (UINT64_C(1) << ((number)-1))

/* Blocks all signals except those that the thread's own instructions cause. Used while a lock of
 * ours or of the embedder is held, and while traces are handed over. Returns whether *before
 * must be restored. */
bool incstack__signals_block(uint64_t *before)
{
	const uint64_t own = BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) |
			     BIT(SIGSYS) | BIT(SIGABRT);
	const uint64_t others = ~own;
	return !incstack__system_call(SYS_rt_sigprocmask, SIG_BLOCK, &others, before,
				      sizeof(others));
}

void incstack__signals_restore(bool blocked, const uint64_t *before)
{
	if (blocked)
		incstack__system_call(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL,
				      sizeof(*before));
}

/* A stack with SS_AUTODISARM counts as none while a handler runs on it. */
bool incstack__on_signal_stack(void)
{
	stack_t current;
	return !incstack__system_call(SYS_sigaltstack, NULL, &current) &&
	       current.ss_flags & SS_ONSTACK;
}
