/* SPDX-License-Identifier: MIT
 *
 * Preloaded, it simulates a full disk: a file with a high descriptor gets no more blocks once it has some
 * 300,000 bytes. The variable FULL_DISK_ERROR has the number of another error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "listen.h"

enum { HIGH = 100, MOST = 300000 };

static int is_full(unsigned thread, int fd)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", thread, fd);
	return stat(path, &status) != 0 || status.st_size >= MOST;
}

static _Noreturn void answer(int listener, int error)
{
	struct seccomp_notif question;
	struct seccomp_notif_resp reply;

	for (;;) {
		memset(&question, 0, sizeof(question));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0)
			continue; /* the thread has ended */
		memset(&reply, 0, sizeof(reply));
		reply.id = question.id;
		if (is_full(question.pid, (int)question.data.args[0]))
			reply.error = -error;
		else
			reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
	}
}

__attribute__((constructor)) static void start(void)
{
	const char *error = getenv("FULL_DISK_ERROR");
	const pid_t program = getpid();
	const int listener = listen_to(SYS_writev, HIGH, UINT32_MAX);

	if (listener == -EBUSY) /* the process that started this one gets answers already */
		return;
	if (listener < 0)
		abort();
	if (raw(SYS_fork, 0, 0, NULL) == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() == program)
			answer(listener, error != NULL ? atoi(error) : ENOSPC);
		_exit(0);
	}
	close(listener);
}
