/* SPDX-License-Identifier: MIT
 *
 * Shared by plugins that answer system calls in place of the kernel. The recorder calls the kernel itself, so the
 * kernel asks a process of the plugin (SECCOMP_RET_USER_NOTIF).
 */
#ifndef LISTEN_H
#define LISTEN_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* The recorder would take libc's functions for a sandbox or a fork of the program. */
static inline long raw(long number, long first, long second, const void *third)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(first), "S"(second), "d"(third)
			 : "rcx", "r11", "memory");
	return result;
}

/* Returns a descriptor with the calls of that number whose first argument is in least..most; a negated error
 * if there is none. */
static inline int listen_to(unsigned number, unsigned least, unsigned most)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, most, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			&program);
}

#endif
