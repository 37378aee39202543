/* SPDX-License-Identifier: MIT
 *
 * Tests the jail: what a worker cannot do, that its end is told, that limits hold, and that the broker
 * refuses what it should.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../src/tool/jail/jail.h"
#include "run_suite.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wreturn-type" /* of work that never ends */

enum { DATA = 1, REFUSE, FILE_OF, HELD };

static const char content[] = "content";

/* ---- the broker's side -------------------------------------------------------------------- */

static int serve_data(void *context, const struct tool_jail_request *request,
		      struct tool_jail_served *served)
{
	memcpy(served->bytes, request->text, request->length);
	served->answer.length = request->length;
	served->answer.numbers[0] = request->numbers[0] + 1;
	return 0;
}

static int serve_refusal(void *context, const struct tool_jail_request *request,
			 struct tool_jail_served *served)
{
	served->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return EPERM;
}

static int serve_file(void *context, const struct tool_jail_request *request,
		      struct tool_jail_served *served)
{
	served->fd = memfd_create("test", MFD_CLOEXEC);
	ck_assert_int_eq(pwrite(served->fd, content, sizeof(content), 0), sizeof(content));
	return 0;
}

static int serve_kill(void *context, const struct tool_jail_request *request,
		      struct tool_jail_served *served)
{
	raise((int)request->numbers[0]);
	return 0;
}

static const struct tool_jail_row rows[] = {
	{DATA, serve_data}, {REFUSE, serve_refusal}, {FILE_OF, serve_file}, {HELD, serve_kill}};

static struct tool_jail jail = {
	.what = "the reader of a test", .rows = rows, .row_count = sizeof(rows) / sizeof(rows[0])};

static char said[4096];

/* Runs the work in a jail; what is printed on stderr comes to `said`. */
static int run(int (*work)(const struct tool_jail *, void *))
{
	char name[] = "/tmp/incstack-jail-XXXXXX";
	const int file = mkstemp(name);
	const int before = dup(STDERR_FILENO);
	ssize_t got;
	int status;

	ck_assert_int_ge(file, 0);
	unlink(name);
	dup2(file, STDERR_FILENO);
	status = tool_jail_run(&jail, work, NULL);
	dup2(before, STDERR_FILENO);
	got = pread(file, said, sizeof(said) - 1, 0);
	said[got > 0 ? got : 0] = 0;
	close(before);
	close(file);
	return status;
}

#define ck_assert_said(text) ck_assert_msg(strstr(said, text) != NULL, "said: %s", said)

static int ask(const struct tool_jail *in, uint32_t kind, const char *text,
	       struct tool_jail_answer *answer, int *fd)
{
	static struct tool_jail_request request;
	static char bytes[TOOL_JAIL_BYTES_MOST];

	if (tool_jail_request(&request, kind, text) != 0)
		return ENAMETOOLONG;
	request.numbers[0] = 41;
	return tool_jail_ask(in, &request, answer, bytes, sizeof(bytes), fd);
}

/* ---- what is served ----------------------------------------------------------------------- */

static int work_served(const struct tool_jail *in, void *context)
{
	struct tool_jail_answer answer;
	char text[sizeof(content)];
	int fd = -1;

	if (ask(in, DATA, "hello", &answer, NULL) != 0 || answer.length != 5 ||
	    answer.numbers[0] != 42)
		return 2;
	if (ask(in, FILE_OF, "", &answer, &fd) != 0 || fd < 0 ||
	    pread(fd, text, sizeof(text), 0) != sizeof(text) || strcmp(text, content) != 0)
		return 3;
	if (ask(in, REFUSE, "", &answer, &fd) != EPERM || fd >= 0)
		return 4;
	return 7;
}

START_TEST(test_served)
{
	ck_assert_int_eq(run(work_served), 7);
	ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(test_served_if_children_are_ignored)
{
	signal(SIGCHLD, SIG_IGN);
	ck_assert_int_eq(run(work_served), 7);
}
END_TEST

/* ---- requests that are refused ------------------------------------------------------------ */

/* By the two calls that a worker may make. */
static ssize_t put(const struct tool_jail *in, const void *bytes, size_t size)
{
	struct iovec part = {(void *)(uintptr_t)bytes, size};
	const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	return sendmsg(in->channel, &message, MSG_NOSIGNAL);
}

static ssize_t take(const struct tool_jail *in, void *bytes, size_t size)
{
	struct iovec part = {bytes, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	return recvmsg(in->channel, &message, 0);
}

static int send_raw(const struct tool_jail *in, const void *bytes, size_t size)
{
	struct tool_jail_answer answer = {0};

	if (put(in, bytes, size) < 0 || take(in, &answer, sizeof(answer)) != sizeof(answer))
		return -1;
	return answer.error;
}

/* Request number i is bad in a way of its own. Returns how many bytes of it are sent. */
static size_t make_bad(unsigned i, struct tool_jail_request *request)
{
	tool_jail_request(request, DATA, "text");
	switch (i % 5) {
	case 0: /* an unknown kind */
		request->kind = i % 2 ? UINT32_MAX - i : 100 + i;
		break;
	case 1: /* a text that is longer or shorter than it says */
		request->length = i % 2 ? 5 + i : i % 4;
		break;
	case 2: /* a length outside */
		request->length = i % 2 ? UINT32_MAX - i : TOOL_JAIL_TEXT + i;
		break;
	case 3: /* bytes behind the text */
		request->text[TOOL_JAIL_TEXT - 1 - i] = 'x';
		break;
	default: /* too short */
		return i * sizeof(*request) / 50 + 1;
	}
	return sizeof(*request);
}

static int work_bad(const struct tool_jail *in, void *context)
{
	static char large[2 * sizeof(struct tool_jail_request)];
	static struct tool_jail_request request;

	for (unsigned i = 0; i < 50; i++) {
		const size_t size = make_bad(i, &request);
		const int error = send_raw(in, &request, size);

		if (error != EBADMSG && error != ENOSYS)
			return 2;
	}
	if (send_raw(in, large, sizeof(large)) != EBADMSG)
		return 3;
	return work_served(in, NULL);
}

START_TEST(test_bad_requests_are_refused)
{
	ck_assert_int_eq(run(work_bad), 7);
}
END_TEST

static int work_sends_descriptor(const struct tool_jail *in, void *context)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer = {0};
	struct iovec part = {&request, sizeof(request)};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	const struct msghdr message = {.msg_iov = &part,
				       .msg_iovlen = 1,
				       .msg_control = &control,
				       .msg_controllen = sizeof(control)};
	const int fd = STDERR_FILENO;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	tool_jail_request(&request, DATA, "text");
	if (sendmsg(in->channel, &message, 0) < 0 ||
	    take(in, &answer, sizeof(answer)) != sizeof(answer))
		return 2;
	return answer.error == EBADMSG ? 7 : 3;
}

START_TEST(test_descriptors_are_not_taken)
{
	ck_assert_int_eq(run(work_sends_descriptor), 7);
}
END_TEST

/* A worker that never reads is ended when its answers fill the socket. */
static int work_floods(const struct tool_jail *in, void *context)
{
	static struct tool_jail_request request;

	tool_jail_request(&request, DATA, "text");
	while (put(in, &request, sizeof(request)) > 0)
		;
	return 7;
}

START_TEST(test_flood_is_ended)
{
	ck_assert_int_eq(run(work_floods), TOOL_JAIL_FAILED);
	ck_assert_said("ended by signal 9");
}
END_TEST

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

/* ---- ends --------------------------------------------------------------------------------- */

static int work_crashes(const struct tool_jail *in, void *context)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 2;
}

START_TEST(test_crash)
{
	ck_assert_int_eq(run(work_crashes), TOOL_JAIL_FAILED);
	ck_assert_said("ended by signal 11");
}
END_TEST

static int work_aborts(const struct tool_jail *in, void *context)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

START_TEST(test_abort)
{
	ck_assert_int_eq(run(work_aborts), TOOL_JAIL_FAILED);
	ck_assert_said("ended by signal 6");
}
END_TEST

/* The broker is ended by SIGTERM, which it passes on. */
static int work_waits(const struct tool_jail *in, void *context)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer;

	tool_jail_request(&request, HELD, "");
	request.numbers[0] = SIGTERM;
	tool_jail_ask(in, &request, &answer, NULL, 0, NULL);
	for (;;)
		nanosleep(&(struct timespec){.tv_sec = 100}, NULL);
}

START_TEST(test_signal_ends_both)
{
	const pid_t broker = fork();
	int status;

	if (broker == 0) {
		signal(SIGTERM, SIG_DFL);
		_exit(tool_jail_run(&jail, work_waits, NULL));
	}
	ck_assert_int_eq(waitpid(broker, &status, 0), broker);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}
END_TEST

/* A worker that holds signals back ends by the second one. */
static int work_does_not_listen(const struct tool_jail *in, void *context)
{
	static struct tool_jail_request request;
	struct tool_jail_answer answer;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	tool_jail_request(&request, HELD, "");
	request.numbers[0] = SIGTERM;
	for (;;)
		tool_jail_ask(in, &request, &answer, NULL, 0, NULL);
}

START_TEST(test_second_signal_ends_both)
{
	const pid_t broker = fork();
	int status;

	if (broker == 0) {
		signal(SIGTERM, SIG_DFL);
		_exit(tool_jail_run(&jail, work_does_not_listen, NULL));
	}
	ck_assert_int_eq(waitpid(broker, &status, 0), broker);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("jail");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, test_served);
	tcase_add_test(tcase, test_served_if_children_are_ignored);
	tcase_add_test(tcase, test_bad_requests_are_refused);
	tcase_add_test(tcase, test_descriptors_are_not_taken);
	tcase_add_test(tcase, test_flood_is_ended);
	tcase_add_test(tcase, test_no_descriptor);
	tcase_add_test(tcase, test_crash);
	tcase_add_test(tcase, test_abort);
	tcase_add_test(tcase, test_signal_ends_both);
	tcase_add_test(tcase, test_second_signal_ends_both);
#ifndef INCSTACK_JAIL_OPEN
	tcase_add_loop_test(tcase, test_call_ends_worker, 0, KILLED);
	tcase_add_test(tcase, test_no_file);
	tcase_add_test(tcase, test_nobody);
	tcase_add_test(tcase, test_memory);
	tcase_add_test(tcase, test_time);
#endif
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
