/* SPDX-License-Identifier: MIT
 *
 * Preloaded, it simulates hardware that protects return addresses: the kernel reports it.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "listen.h"

enum { SHSTK_STATUS = 0x5005, SHSTK_ENABLED = 1, STACK_BYTES = 64 << 10 };

static char stack[STACK_BYTES];
static struct seccomp_notif question;
static struct seccomp_notif_resp reply;

/* A process that shares the program's memory, where the answer goes. It calls nothing of libc that has a state. */
static int answer(void *argument)
{
	const int listener = *(const int *)argument;

	raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, NULL);
	for (;;) {
		memset(&question, 0, sizeof(question));
		if (raw(SYS_ioctl, listener, (long)SECCOMP_IOCTL_NOTIF_RECV, &question) != 0)
			continue;
		*(unsigned long *)question.data.args[1] = SHSTK_ENABLED;
		memset(&reply, 0, sizeof(reply));
		reply.id = question.id;
		raw(SYS_ioctl, listener, (long)SECCOMP_IOCTL_NOTIF_SEND, &reply);
	}
}

__attribute__((constructor)) static void start(void)
{
	static int listener;

	listener = listen_to(SYS_arch_prctl, SHSTK_STATUS, SHSTK_STATUS);
	if (listener < 0 || clone(answer, stack + STACK_BYTES, CLONE_VM, &listener) < 0)
		abort();
	close(listener);
}
