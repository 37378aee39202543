/* SPDX-License-Identifier: MIT
 *
 * Tests what a worker in the jail cannot do, and its limits.
 */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "jail_run.h"

/* ---- what a worker cannot do -------------------------------------------------------------- */

static int work_opens(const struct tool_jail *in, void *context)
{
	struct stat status;

	if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
		return 2;
	if (stat("/etc/passwd", &status) == 0 || unlink("/tmp/x") == 0)
		return 3;
	return fstat(1, &status) == 0 ? 7 : 4;
}

static int work_is_nobody(const struct tool_jail *in, void *context)
{
	return geteuid() != 0 && getuid() != 0 && getegid() != 0 && getgid() != 0 ? 7 : 2;
}

static int work_has_no_descriptor(const struct tool_jail *in, void *context)
{
	for (int fd = 3; fd < 100; fd++)
		if (fd != in->channel && fcntl(fd, F_GETFD) >= 0)
			return 2;
	return fcntl(STDIN_FILENO, F_GETFD) >= 0 ? 7 : 3;
}

static int work_connects(const struct tool_jail *in, void *context)
{
	return socket(AF_INET, SOCK_STREAM, 0) < 0 ? 2 : 3;
}

static int work_executes(const struct tool_jail *in, void *context)
{
	execl("/bin/true", "true", (char *)NULL);
	return 2;
}

static int work_forks(const struct tool_jail *in, void *context)
{
	return fork() < 0 ? 2 : 3;
}

static int work_kills(const struct tool_jail *in, void *context)
{
	return kill(getppid(), SIGTERM) == 0 ? 2 : 3;
}

static int work_makes_code(const struct tool_jail *in, void *context)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED
		       ? 2
		       : 3;
}

static int work_types(const struct tool_jail *in, void *context)
{
	return (int)syscall(SYS_ioctl, 1, 0x5412 /* TIOCSTI */, "x");
}

static int work_traces(const struct tool_jail *in, void *context)
{
	return (int)syscall(SYS_ptrace, 16 /* PTRACE_ATTACH */, 1, 0, 0);
}

static int work_old_calls(const struct tool_jail *in, void *context)
{
	long result;

	/* getpid by the numbers of i386. */
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
	return 2;
}

typedef int work_fn(const struct tool_jail *, void *);

static work_fn *const killed[] = {work_connects, work_executes,   work_forks,  work_kills,
				  work_types,    work_makes_code, work_traces, work_old_calls};
enum { KILLED = sizeof(killed) / sizeof(killed[0]) };

START_TEST(test_call_ends_worker)
{
	ck_assert_int_eq(run(killed[_i]), TOOL_JAIL_FAILED);
	ck_assert_said("the reader of a test was ended by signal 31");
	ck_assert_said("system call");
}
END_TEST

START_TEST(test_no_file)
{
	ck_assert_int_eq(run(work_opens), 7);
}
END_TEST

START_TEST(test_nobody)
{
	if (geteuid() == 0)
		ck_assert_int_eq(run(work_is_nobody), 7);
}
END_TEST

START_TEST(test_no_descriptor)
{
	ck_assert_int_ge(open("/dev/null", O_RDONLY), 3);
	ck_assert_int_ge(dup2(1, 77), 3);
	ck_assert_int_eq(run(work_has_no_descriptor), 7);
}
END_TEST

/* ---- limits ------------------------------------------------------------------------------- */

static int work_wants_memory(const struct tool_jail *in, void *context)
{
	for (;;) {
		char *some = malloc(1 << 20);

		if (some == NULL)
			return 5;
		for (size_t i = 0; i < 1 << 20; i += 4096)
			((volatile char *)some)[i] = 1;
	}
}

START_TEST(test_memory)
{
	jail.limits.memory = 64 << 20;
	ck_assert_int_eq(run(work_wants_memory), 5);
	ck_assert_said("the reader of a test may use 64 MiB of memory, and needed more");
}
END_TEST

static int work_never_ends(const struct tool_jail *in, void *context)
{
	for (;;) {
		volatile int nothing = 0;

		(void)nothing;
	}
}

START_TEST(test_time)
{
	jail.limits.seconds = 1;
	ck_assert_int_eq(run(work_never_ends), TOOL_JAIL_FAILED);
	ck_assert_said("more than 1 seconds of processor time");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("jail rights");
	TCase *tcase = tcase_create("all");

	tcase_add_loop_test(tcase, test_call_ends_worker, 0, KILLED);
	tcase_add_test(tcase, test_no_descriptor);
	tcase_add_test(tcase, test_no_file);
	tcase_add_test(tcase, test_nobody);
	tcase_add_test(tcase, test_memory);
	tcase_add_test(tcase, test_time);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
