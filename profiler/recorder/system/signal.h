/* SPDX-License-Identifier: MIT
 *
 * Actions of signals, by the kernel's call, because libc's sigaction refuses the signals that libc uses
 * itself, and the stub interposes it.
 */
#ifndef INCSTACK_RECORDER_SIGNAL_H
#define INCSTACK_RECORDER_SIGNAL_H

#include <signal.h>
#include <stdint.h>

typedef void incstack__signal_handler(int number, siginfo_t *info, void *context);

/* The kernel's struct sigaction. */
struct incstack__signal_action {
	incstack__signal_handler *handler;
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

#define INCSTACK__SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))

/* The flag that an action needs to name its restorer. */
#define INCSTACK__SIGNAL_RESTORER 0x04000000u

/* What a handler of ours blocks: all but the signals that the program's own instructions cause, and the
 * signal with which libc cancels threads. */
#define INCSTACK__SIGNAL_OTHERS \
	(~(INCSTACK__SIGNAL_BIT(SIGSEGV) | INCSTACK__SIGNAL_BIT(SIGBUS) | \
	   INCSTACK__SIGNAL_BIT(SIGILL) | INCSTACK__SIGNAL_BIT(SIGFPE) | \
	   INCSTACK__SIGNAL_BIT(SIGSYS) | INCSTACK__SIGNAL_BIT(SIGABRT) | \
	   INCSTACK__SIGNAL_BIT(32)))

/* Returns 0, or -1. Either action may be null. */
int incstack__signal_action(int number, const struct incstack__signal_action *new,
			    struct incstack__signal_action *old);
/* Returns libc's function to which handlers return, or null. First called before the program runs. */
void (*incstack__signal_restorer(void))(void);

#endif
