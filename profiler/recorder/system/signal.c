/* SPDX-License-Identifier: MIT
 *
 * Actions of signals, by the kernel's call.
 */
#include "signal.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "kernel.h"

int incstack__signal_action(int number, const struct incstack__signal_action *new,
			    struct incstack__signal_action *old)
{
	return (int)incstack__kernel_call(SYS_rt_sigaction, number, new, old, sizeof(new->mask));
}

/* libc passes the function to the kernel with every handler that it installs. So a signal that has no
 * handler gets a handler for a moment. */
void (*incstack__signal_restorer(void))(void)
{
	static void (*restorer)(void);
	struct sigaction ours = {.sa_handler = SIG_IGN};
	struct sigaction before;
	struct incstack__signal_action there = {0};

	if (restorer)
		return restorer;
	sigemptyset(&ours.sa_mask);
	if (sigaction(SIGRTMAX, &ours, &before) != 0)
		return NULL;
	incstack__signal_action(SIGRTMAX, NULL, &there);
	sigaction(SIGRTMAX, &before, NULL);
	restorer = there.restorer;
	return restorer;
}
