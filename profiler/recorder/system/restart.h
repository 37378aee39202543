/* SPDX-License-Identifier: MIT
 *
 * System calls that the recorder's own signal interrupts are made again, because some return EINTR after
 * any handler, even with SA_RESTART (D54).
 */
#ifndef INCSTACK_RECORDER_RESTART_H
#define INCSTACK_RECORDER_RESTART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <ucontext.h>

/* The call in which a thread is blocked. */
struct incstack__blocked_call {
	_Atomic int64_t number;
	_Atomic uint64_t arguments[6];
	_Atomic uint64_t sp, pc;
};

/* Reads the call from /proc. `*call` stays as it is if the thread is in no call, or if that is
 * unknown. */
void incstack__restart_prepare(pid_t tid, struct incstack__blocked_call *call);

/* Called in the signal handler. If the signal has made this call fail, the thread will make the
 * call again. A timeout then starts from the beginning. */
void incstack__restart(const struct incstack__blocked_call *call, void *ucontext);

/* failed_call.c: whether the signal has made a system call of the program return EINTR. Calls that the kernel
 * restarts are not among them. */
bool incstack__restart_failed_call(const ucontext_t *context);

#endif
