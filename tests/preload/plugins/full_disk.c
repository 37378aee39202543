/* SPDX-License-Identifier: MIT
 *
 * Preloaded, it simulates a full disk: a file with a high descriptor gets no more blocks once it has some
 * 300,000 bytes. The variable FULL_DISK_ERROR has the number of another error. The recorder calls the kernel
 * itself, so the kernel asks a process of this library before each write (SECCOMP_RET_USER_NOTIF).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HIGH = 100, MOST = 300000 };

/* The recorder would take libc's functions for a sandbox or a fork of the program. */
static long raw(long number, long first, long second, const void *third)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(first), "S"(second), "d"(third)
			 : "rcx", "r11", "memory");
	return result;
}

/* Returns a descriptor from which the writes to high descriptors can be read. */
static int ask_before_writes(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_writev, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, HIGH, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			&program);
}

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
	const int listener = ask_before_writes();

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
