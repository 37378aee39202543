/* SPDX-License-Identifier: MIT
 *
 * incstack heap loses samples
 *
 * A program with threads that enters a sandbox while there are return barriers on its
 * stacks, and then allocates, returns through them, jumps, and ends. The first argument
 * says how:
 *   kill (or none), trap   a filter that allows few system calls
 *   errno                  the same, but the others return an error
 *   allow                  a filter that forbids only a call that nobody makes
 *   sync                   as kill, for all threads, by the system call
 *   strict                 read, write and exit only
 *   calls                  as kill, by the system call of prctl
 *   strict_call            as strict, by the system call
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nest.h"

#define ALLOW(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static const char *kind = "kill";
static int entered;
static jmp_buf target;

static int is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static int load_list(uint32_t otherwise)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_exit_group),
		ALLOW(SYS_exit),
		ALLOW(SYS_futex),
		ALLOW(SYS_set_robust_list),
		ALLOW(SYS_rseq),
		ALLOW(SYS_brk),
		ALLOW(SYS_mmap),
		ALLOW(SYS_munmap),
		ALLOW(SYS_mprotect),
		ALLOW(SYS_madvise),
		ALLOW(SYS_rt_sigprocmask),
		BPF_STMT(BPF_RET | BPF_K, otherwise),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (is("sync"))
		return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
				    &program);
	if (is("calls"))
		return (int)syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int load_one(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* What is refused or changes nothing. */
static int ask(void)
{
	int clock;

	return prctl(PR_SET_SECCOMP, 77) != -1 || prctl(PR_SET_TSC, PR_TSC_ENABLE) != 0 ||
	       prctl(PR_GET_TSC, &clock) != 0 || clock != PR_TSC_ENABLE ||
	       syscall(SYS_seccomp, 77, 0, NULL) != -1 || syscall(SYS_prctl, PR_GET_SECCOMP) != 0 ||
	       syscall(SYS_getpid) != getpid();
}

static void enter(void)
{
	int error;

	allocate();
	/* Questions whether there is seccomp, which forbid nothing. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == 0 || errno != EFAULT)
		_exit(20);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void *)8) == 0 || errno != EFAULT)
		_exit(21);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (ask() != 0)
		_exit(23);
	if (is("strict"))
		error = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	else if (is("strict_call"))
		error = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
	else if (is("allow"))
		error = load_one();
	else
		error = load_list(is("errno")  ? SECCOMP_RET_ERRNO | EPERM
				  : is("trap") ? SECCOMP_RET_TRAP
					       : SECCOMP_RET_KILL_PROCESS);
	if (error != 0)
		_exit(22);
	allocate();
	__atomic_store_n(&entered, 1, __ATOMIC_RELEASE);
}

static void wait_and_allocate(void)
{
	while (!__atomic_load_n(&entered, __ATOMIC_ACQUIRE))
		allocate();
	allocate();
}

static void jump(void)
{
	allocate();
	longjmp(target, 1);
}

static void *thread_main(void *argument)
{
	nest(30, wait_and_allocate);
	nest(10, allocate);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t threads[3];

	if (argc > 1 && strchr(argv[1], '/') == NULL)
		kind = argv[1];
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, thread_main, NULL) != 0)
			return 1;
	for (int i = 0; i < 2000; i++)
		nest(i % 20, allocate);
	nest(40, enter);
	for (int i = 0; i < 2000; i++)
		nest(i % 20, allocate);
	if (setjmp(target) == 0)
		nest(10, jump);
	if (is("strict") || is("strict_call"))
		syscall(SYS_exit, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
