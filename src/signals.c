/* SPDX-License-Identifier: MIT
 *
 * Keeps signals away from what no jump out of a handler may leave in the middle.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

#define BIT(number) (UINT64_C(1) << ((number)-1))

/* No signals from outside where nothing may be left in the middle: while a lock is held,
 * ours or the embedder's, and while the traces change hands. Returns whether *before is to
 * be restored. */
bool incstack__signals_block(uint64_t *before)
{
	const uint64_t own = BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) |
			     BIT(SIGSYS) | BIT(SIGABRT);
	const uint64_t others = ~own;
	return !syscall(SYS_rt_sigprocmask, SIG_BLOCK, &others, before, sizeof(others));
}

void incstack__signals_restore(bool blocked, const uint64_t *before)
{
	if (blocked)
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, sizeof(*before));
}
