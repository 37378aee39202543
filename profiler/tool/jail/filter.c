/* SPDX-License-Identifier: MIT
 *
 * The system calls of a worker. It may read, write, map and close the descriptors that it has, ask the
 * broker for others, and end. A call that would open or look at a file by its name fails with EACCES,
 * because libraries try it. Any other call kills the worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jail.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* With any arguments. By mincore, msync and pipe2, an allocator that is preloaded and walks the stack asks what
 * can be read; LTTng's libraries call membarrier. */
static const int allowed[] = {
	SCMP_SYS(read),         SCMP_SYS(readv),           SCMP_SYS(pread64),
	SCMP_SYS(preadv),       SCMP_SYS(write),           SCMP_SYS(writev),
	SCMP_SYS(pwrite64),     SCMP_SYS(pwritev),         SCMP_SYS(lseek),
	SCMP_SYS(ftruncate),    SCMP_SYS(fadvise64),       SCMP_SYS(close),
	SCMP_SYS(dup),          SCMP_SYS(fstat),           SCMP_SYS(poll),
	SCMP_SYS(ppoll),        SCMP_SYS(sendmsg),         SCMP_SYS(recvmsg),
	SCMP_SYS(brk),          SCMP_SYS(munmap),          SCMP_SYS(mremap),
	SCMP_SYS(madvise),      SCMP_SYS(futex),           SCMP_SYS(getrandom),
	SCMP_SYS(sysinfo), /* qsort: how much memory there is */
	SCMP_SYS(sched_yield),  SCMP_SYS(getpid),          SCMP_SYS(gettid),
	SCMP_SYS(getuid),       SCMP_SYS(geteuid),         SCMP_SYS(getgid),
	SCMP_SYS(getegid),      SCMP_SYS(clock_gettime),   SCMP_SYS(gettimeofday),
	SCMP_SYS(time),         SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
	SCMP_SYS(setitimer),    SCMP_SYS(rt_sigaction),    SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),     SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),         SCMP_SYS(exit_group),      SCMP_SYS(mincore),
	SCMP_SYS(msync),        SCMP_SYS(pipe2),           SCMP_SYS(membarrier),
};

/* They fail with EACCES. */
static const int refused[] = {
	SCMP_SYS(open),      SCMP_SYS(openat),    SCMP_SYS(openat2),    SCMP_SYS(creat),
	SCMP_SYS(access),    SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(stat),
	SCMP_SYS(lstat),     SCMP_SYS(readlink),  SCMP_SYS(readlinkat), SCMP_SYS(getrlimit),
	SCMP_SYS(prlimit64), SCMP_SYS(setrlimit), SCMP_SYS(unlink),     SCMP_SYS(unlinkat),
	SCMP_SYS(rename),    SCMP_SYS(renameat),  SCMP_SYS(getcwd),     SCMP_SYS(sched_getaffinity),
};

/* With one value of one argument, all of whose bits in `mask` count. */
static const struct {
	int number;
	unsigned argument;
	uint64_t mask, value;
	bool is_refused;
} conditional[] = {
	{SCMP_SYS(mmap), 2, PROT_EXEC, 0, false},
	{SCMP_SYS(mprotect), 2, PROT_EXEC, 0, false},
	{SCMP_SYS(newfstatat), 3, AT_EMPTY_PATH, AT_EMPTY_PATH, false},
	{SCMP_SYS(newfstatat), 3, AT_EMPTY_PATH, 0, true},
	{SCMP_SYS(statx), 2, AT_EMPTY_PATH, AT_EMPTY_PATH, false},
	{SCMP_SYS(statx), 2, AT_EMPTY_PATH, 0, true},
	{SCMP_SYS(ioctl), 1, UINT32_MAX, TCGETS, false},
	{SCMP_SYS(ioctl), 1, UINT32_MAX, TIOCGWINSZ, false},
	{SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFL, false},
	{SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFD, false},
	{SCMP_SYS(fcntl), 1, UINT32_MAX, F_SETFD, false},
	{SCMP_SYS(fcntl), 1, UINT32_MAX, F_DUPFD_CLOEXEC, false},
};

static int allow_conditional(scmp_filter_ctx filter)
{
	int error = 0;

	for (size_t i = 0; i < COUNT(conditional) && error == 0; i++)
		error = seccomp_rule_add(
			filter, conditional[i].is_refused ? SCMP_ACT_ERRNO(EACCES) : SCMP_ACT_ALLOW,
			conditional[i].number, 1,
			SCMP_CMP(conditional[i].argument, SCMP_CMP_MASKED_EQ, conditional[i].mask,
				 conditional[i].value));
	return error;
}

static struct scmp_arg_cmp equals(unsigned argument, uint64_t value)
{
	return (struct scmp_arg_cmp){.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value};
}

/* raise and abort. */
static int allow_own_signals(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp own = equals(0, (uint64_t)getpid());
	const int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, own);

	return error != 0 ? error
			  : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(kill), 1, own);
}

static int allow_further(scmp_filter_ctx filter, const struct tool_jail_limits *limits)
{
	int error = 0;

	for (size_t i = 0; i < limits->call_count && error == 0; i++) {
		const struct tool_jail_call *call = &limits->calls[i];

		if (call->argument < 0)
			error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call->number, 0);
		else
			error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call->number, 1,
						 equals((unsigned)call->argument, call->value));
	}
	return error;
}

static int fill(scmp_filter_ctx filter, const struct tool_jail_limits *limits)
{
	int error = 0;

	for (size_t i = 0; i < COUNT(allowed) && error == 0; i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	for (size_t i = 0; i < COUNT(refused) && error == 0; i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), refused[i], 0);
	if (error == 0)
		error = allow_conditional(filter);
	if (error == 0)
		error = allow_own_signals(filter);
	return error != 0 ? error : allow_further(filter, limits);
}

int tool_jail_filter(const struct tool_jail_limits *limits)
{
	const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int error = filter == NULL ? -ENOMEM : fill(filter, limits);

	if (error == 0)
		error = seccomp_load(filter);
	if (filter != NULL)
		seccomp_release(filter);
	return -error;
}
