/* SPDX-License-Identifier: MIT
 *
 * Enters a sandbox and allocates on: strict mode, or a filter that kills at every system call
 * but the few that this program needs.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(call) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void *volatile kept;

static int enter_filter(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(write),
		ALLOW(brk),
		ALLOW(getrandom),
		ALLOW(exit_group),
		ALLOW(munmap),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	const int strict = argc > 2 && strcmp(argv[1], "strict") == 0;
	const long count = atol(argv[argc - 1]);

	/* libc asks for memory once; strict mode allows no more. */
	kept = malloc(48);
	free(kept);
	if (strict ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) : enter_filter())
		return 1;
	for (long i = 0; i < count; i++) {
		kept = malloc(48);
		free(kept);
	}
	if (write(STDOUT_FILENO, "done\n", 5) != 5)
		return 1;
	/* Strict mode allows exit, not the exit_group of libc's. */
	if (strict)
		syscall(SYS_exit, 0);
	return 0;
}
